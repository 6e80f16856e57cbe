# What a reader of the public API need not see: of a trait that is derived or written as ever, its one method (the line of
# the impl says as much); of the auto traits, that a type has them (that it has not, or only under a condition, is said), and
# those that are the compiler's own or change with a field of a dependency.
BEGIN {
    method["core::clone::Clone"] = "clone"
    method["core::cmp::Ord"] = "cmp"
    method["core::cmp::PartialEq"] = "eq"
    method["core::cmp::PartialOrd"] = "partial_cmp"
    method["core::default::Default"] = "default"
    method["core::fmt::Debug"] = "fmt"
    method["core::fmt::Display"] = "fmt"
    method["core::hash::Hash"] = "hash"
}
/^impl.* !?core::marker::(Freeze|StructuralPartialEq|UnsafeUnpin) for / { next }
/^impl.* !?core::panic::unwind_safe::/ { next }
/^impl.* core::marker::(Send|Sync|Unpin) for / && !/ where / { next }
expected != "" && $0 ~ ("^pub fn .*::" expected "[(<]") { expected = ""; next }
{
    expected = ""
    if (/^impl/ && match($0, /core::[A-Za-z:]+ for /)) expected = method[substr($0, RSTART, RLENGTH - 5)]
    print
}
