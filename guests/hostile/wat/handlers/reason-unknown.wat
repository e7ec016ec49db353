;; Rejects for a reason that does not exist.
(core module $guest
  (memory (export "memory") 1)
  ;; The outcome: case 2, the reason, the description's place and length.
  (data (i32.const 16) "\02\00\00\00\00\00\00\00" "\09\00\00\00" "\40\00\00\00" "\00\00\00\00")
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
