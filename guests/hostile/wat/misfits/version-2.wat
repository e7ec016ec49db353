;; Built for a version of the package that this host does not serve: an outcome has a further case.
(component
  (import "pumphouse:handler/types@2.0.0" (instance $types
    (type $message' (record (field "id" string) (field "body" (list u8))))
    (export "message" (type (eq $message')))
    (type $outcome' (variant (case "ack") (case "park")))
    (export "outcome" (type (eq $outcome')))))
  (alias export $types "message" (type $message))
  (alias export $types "outcome" (type $outcome))
  (core module $guest
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
    (func (export "handle") (param i32 i32 i32 i32) (result i32) (i32.const 1)))
  (core instance $instance (instantiate $guest))
  (alias core export $instance "memory" (core memory $memory))
  (alias core export $instance "realloc" (core func $realloc))
  (alias core export $instance "handle" (core func $handle'))
  (func $handle (param "message" $message) (result $outcome)
    (canon lift (core func $handle')
      (memory $memory)
      (realloc $realloc)))
  (instance $exports
    (export "message" (type $message))
    (export "outcome" (type $outcome))
    (export "handle" (func $handle)))
  (export "pumphouse:handler/incoming-handler@2.0.0" (instance $exports)))
