;; Exports a handler of another shape under the right name: text in, a truth value out.
(component
  (core module $guest
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
    (func (export "handle") (param i32 i32) (result i32) (i32.const 1)))
  (core instance $instance (instantiate $guest))
  (alias core export $instance "memory" (core memory $memory))
  (alias core export $instance "realloc" (core func $realloc))
  (alias core export $instance "handle" (core func $handle'))
  (func $handle (param "message" string) (result bool)
    (canon lift (core func $handle')
      (memory $memory)
      (realloc $realloc)))
  (instance $exports (export "handle" (func $handle)))
  (export "pumphouse:handler/incoming-handler@1.0.0" (instance $exports)))
