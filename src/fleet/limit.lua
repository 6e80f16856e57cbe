-- One shared bucket: takes one attempt, or says how long until there will be one. The generic cell rate algorithm.
-- It does what SharedBucket in src/policy/shared_limit.rs does, step for step; a test holds them together.
-- Times are whole microseconds of the server's own clock.
local every, burst, allowance = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full_at = tonumber(redis.call('GET', KEYS[1]) or '') or 0
full_at = math.min(math.max(full_at, now), now + every * burst) + every
local wait = math.max(full_at - now - every * allowance, 0)
if wait == 0 then
  local text = string.format('%.0f', full_at)
  redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', math.ceil((full_at - now) / 1000) + 1000))
end
return { wait, now }
