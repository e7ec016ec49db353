;; Answers with whatever bytes the message brings, so that the message is the fuzzer's hand on the answer. Byte 0 of the
;; body: where it is odd, the answer lies where bytes 4 to 8 say, else at 4096. What follows byte 8 is copied to 4096.
(core module $guest
  (memory (export "memory") 1)
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (local $body i32) (local $length i32)
    (local.set $body (i32.load offset=72 (local.get $message)))
    (local.set $length (i32.load offset=76 (local.get $message)))
    (if (i32.lt_u (local.get $length) (i32.const 8))
      (then (return (i32.const 4096))))
    ;; First where the answer is said to be: the body may reach beyond 4096.
    (if (i32.and (i32.load8_u (local.get $body)) (i32.const 1))
      (then (return (i32.load offset=4 (local.get $body)))))
    (memory.copy (i32.const 4096)
      (i32.add (local.get $body) (i32.const 8))
      (i32.sub (local.get $length) (i32.const 8)))
    (i32.const 4096))
  (func (export "post") (param $outcome i32)))
