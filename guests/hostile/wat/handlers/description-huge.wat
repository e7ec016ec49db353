;; Rejects with a description of 39 MiB, nearly all of its memory: it takes no work to say.
(core module $guest
  (memory (export "memory") 640)
  ;; The outcome: case 2, the reason, the description's place and length.
  (data (i32.const 16) "\02\00\00\00\00\00\00\00" "\00\00\00\00" "\00\00\10\00" "\00\00\70\02")
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
