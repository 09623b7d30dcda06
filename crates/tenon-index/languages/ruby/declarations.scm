(class name: (constant) @name) @declaration.class
(class name: (constant) @name body: (_) @body)
(class name: (scope_resolution scope: (_) @qualifier name: (constant) @name)) @declaration.class
(class name: (scope_resolution name: (constant) @name) body: (_) @body)
(class name: (constant) @name superclass: (superclass (_) @base))
(class name: (scope_resolution name: (constant) @name) superclass: (superclass (_) @base))

(module name: (constant) @name) @declaration.module
(module name: (constant) @name body: (_) @body)
(module name: (scope_resolution scope: (_) @qualifier name: (constant) @name)) @declaration.module
(module name: (scope_resolution name: (constant) @name) body: (_) @body)

; Mixins.
((class
  name: (constant) @name
  body: (body_statement (call
    method: (identifier) @_method
    arguments: (argument_list [(constant) (scope_resolution)] @base))))
  (#any-of? @_method "include" "prepend" "extend"))

(method name: (_) @name) @declaration.method
(method name: (_) @name body: (_) @body)
(program (method name: (_) @name) @declaration.function)
(singleton_method name: (_) @name) @declaration.method
(singleton_method name: (_) @name body: (_) @body)

((call
  method: (identifier) @_method
  arguments: (argument_list (simple_symbol) @name)) @declaration.property
  (#any-of? @_method "attr_accessor" "attr_reader" "attr_writer"))
((call
  method: (identifier) @_method
  arguments: (argument_list . (simple_symbol) @name)) @declaration.method
  (#any-of? @_method "define_method" "scope" "delegate"))

(program (assignment left: (constant) @name) @declaration.constant)
(body_statement (assignment left: (constant) @name) @declaration.constant)
(program (assignment left: (global_variable) @name) @declaration.variable)
(assignment
  left: (constant) @name
  right: (call
    receiver: (constant) @base
    method: (identifier) @_new
    block: (_) @body)
  (#eq? @_new "new")) @declaration.class
