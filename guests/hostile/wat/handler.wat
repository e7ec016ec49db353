;; The frame of every handler in handlers/: the types of pumphouse:handler@1.0.0, and the export.
(component
  (import "pumphouse:handler/types@1.0.0" (instance $types
    (type $headers (list (tuple string string)))
    (type $text (option string))
    (type $millis (option u64))
    (type $bytes (list u8))
    (type $message' (record
      (field "id" string)
      (field "source" string)
      (field "delivery-count" u32)
      (field "headers" $headers)
      (field "content-type" $text)
      (field "ordering-key" $text)
      (field "published-at" $millis)
      (field "body" $bytes)))
    (export "message" (type (eq $message')))
    (type $reason' (enum "unacceptable" "delivery-error" "none"))
    (export "rejection-reason" (type $reason (eq $reason')))
    (type $rejection' (record (field "reason" $reason) (field "description" string)))
    (export "rejection" (type $rejection (eq $rejection')))
    (type $outcome' (variant (case "ack") (case "defer" $millis) (case "reject" $rejection)))
    (export "outcome" (type (eq $outcome')))))
  (alias export $types "message" (type $message))
  (alias export $types "outcome" (type $outcome))

  ;; FIELDS

  (core instance $instance (instantiate $guest))
  (alias core export $instance "memory" (core memory $memory))
  (alias core export $instance "realloc" (core func $realloc))

  ;; Answers a message whose body is `good` itself, with the outcome at 8192, where memory is zero: `ack`. So each of
  ;; the guests has a message that it behaves on.
  (core module $gate
    (import "guest" "memory" (memory 0))
    (import "guest" "handle" (func $handle (param i32) (result i32)))
    (import "guest" "post" (func $post (param i32)))
    (func $is_good (param $message i32) (result i32)
      (if (i32.ne (i32.load offset=76 (local.get $message)) (i32.const 4))
        (then (return (i32.const 0))))
      (i32.eq (i32.load (i32.load offset=72 (local.get $message))) (i32.const 0x646f6f67)))
    (func (export "handle") (param $message i32) (result i32)
      (if (call $is_good (local.get $message))
        (then (return (i32.const 8192))))
      (call $handle (local.get $message)))
    (func (export "post") (param $outcome i32)
      (if (i32.ne (local.get $outcome) (i32.const 8192))
        (then (call $post (local.get $outcome))))))
  (core instance $gated (instantiate $gate (with "guest" (instance $instance))))
  (alias core export $gated "post" (core func $post))
  (alias core export $gated "handle" (core func $handle'))
  (func $handle (param "message" $message) (result $outcome)
    (canon lift (core func $handle')
      (memory $memory)
      (realloc $realloc)
      (post-return $post)))
  (instance $exports
    (export "message" (type $message))
    (export "outcome" (type $outcome))
    (export "handle" (func $handle)))
  (export "pumphouse:handler/incoming-handler@1.0.0" (instance $exports))
)
