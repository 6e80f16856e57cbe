-- One callee's circuit as a whole fleet sees it: takes in what one process tells, answers it.
-- It does what SharedState in src/policy/fleet/shared.rs does, step for step; a test holds them together.
-- Times are whole microseconds of the server's own clock.
local a = {}
for i = 1, #ARGV do a[i] = tonumber(ARGV[i]) end
local percent, minimum, width, open_for, probe_every, to_close, lifetime = a[1], a[2], a[3], a[4], a[5], a[6], a[7]
local failures, successes, probe_failures, probe_successes = a[8], a[9], a[10], a[11]
local age, stands_for, asks = a[12], a[13], a[14]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- 1: open until (0: closed), 2: last changed (0: never), 3: next probe, 4: successful probes, 5: forgotten at;
-- then of each of ten slots: its number, failures, successes, demand.
local s = {}
for number in string.gmatch(redis.call('GET', KEYS[1]) or '', '%d+') do s[#s + 1] = tonumber(number) end
if #s ~= 45 or s[5] <= now or s[2] > now or s[3] > now + 1000000 then
  for i = 1, 45 do s[i] = 0 end
end

local number = math.floor(now / width)

local function slot()
  local base = 5 + number % 10 * 4
  if s[base + 1] ~= number then
    s[base + 1], s[base + 2], s[base + 3], s[base + 4] = number, 0, 0, 0
  end
  return base
end

local function holds(base)
  return s[base + 1] <= number and s[base + 1] + 10 > number
end

local function turn(open_until)
  s[1], s[2], s[3], s[4] = open_until, now, 0, 0
  for base = 5, 41, 4 do s[base + 2], s[base + 3] = 0, 0 end
end

local function count()
  if s[1] > 0 then
    if probe_failures > 0 then
      turn(now + open_for)
    elseif probe_successes > 0 then
      s[4] = s[4] + probe_successes
      if s[4] >= to_close then turn(0) end
    end
    return
  end
  local base = slot()
  s[base + 2], s[base + 3] = s[base + 2] + failures, s[base + 3] + successes
  local failed, all = 0, 0
  for b = 5, 41, 4 do
    if holds(b) then failed, all = failed + s[b + 2], all + s[b + 2] + s[b + 3] end
  end
  if failures > 0 and all >= minimum and failed * 100 >= all * percent then turn(now + open_for) end
end

local write = false
if failures + successes + probe_failures + probe_successes + stands_for > 0 then
  local base = slot()
  s[base + 4] = s[base + 4] + stands_for
  if math.max(now - age, 0) >= s[2] then count() end
  write = true
end
local probe = 0
if s[1] > 0 and asks > 0 and now >= math.max(s[1], s[3]) then
  probe = 1
  s[3] = now + probe_every
  write = true
end
if write then
  s[5] = now + lifetime
  local text = {}
  for i = 1, 45 do text[i] = string.format('%.0f', s[i]) end
  redis.call('SET', KEYS[1], table.concat(text, ' '), 'PX', string.format('%.0f', math.ceil(lifetime / 1000) + 1000))
end

local state, come_back = 0, 0
if s[1] > 0 then
  state = now < s[1] and 2 or 1
  if probe == 0 then come_back = math.max(math.max(s[1], s[3]) - now, 0) end
end
local sum, oldest = 0, nil
for b = 5, 41, 4 do
  if holds(b) and s[b + 4] > 0 then
    sum = sum + s[b + 4]
    if not oldest or s[b + 1] < oldest then oldest = s[b + 1] end
  end
end
local demand = 0
if oldest then demand = math.floor(sum * 1000000 / math.max(now - oldest * width, width)) end
return { state, come_back, probe, s[2] > 0 and now - s[2] or -1, demand, now }
