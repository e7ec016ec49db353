;; Rejects with a description that is not UTF-8.
(core module $guest
  (memory (export "memory") 1)
  ;; The outcome: case 2, the reason, the description's place and length.
  (data (i32.const 16) "\02\00\00\00\00\00\00\00" "\00\00\00\00" "\40\00\00\00" "\04\00\00\00")
  (data (i32.const 64) "\ff\fe\c0\80")
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
