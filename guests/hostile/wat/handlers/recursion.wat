;; Calls itself until the engine's stack is used up.
(core module $guest
  (memory (export "memory") 1)
  (func $dive (param $depth i64) (result i64)
    (i64.add (i64.const 1) (call $dive (i64.add (local.get $depth) (i64.const 1)))))
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (drop (call $dive (i64.const 0)))
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
