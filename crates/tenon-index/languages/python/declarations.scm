(function_definition
  name: (identifier) @name
  body: (block) @body) @declaration.function

(function_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)))

(class_definition
  name: (identifier) @name
  body: (block) @body) @declaration.class

(class_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)))

(class_definition
  name: (identifier) @name
  superclasses: (argument_list
    [(identifier) (attribute) (subscript) (call)] @base))

((class_definition
  name: (identifier) @name
  superclasses: (argument_list
    [
      (identifier) @_base
      (attribute attribute: (identifier) @_base)
    ])) @declaration.enum
  (#match? @_base "^(Int|Str|Auto)?(Enum|Flag)$"))

((decorated_definition
  (decorator
    [
      (identifier) @_decorator
      (attribute attribute: (identifier) @_decorator)
      (call function: (identifier) @_decorator)
      (call function: (attribute attribute: (identifier) @_decorator))
    ])
  definition: (function_definition
    name: (identifier) @name) @declaration.property)
  (#match? @_decorator "(^|_)(property|setter|getter|deleter)$|^hybrid_property$"))

(type_alias_statement
  left: (type [
    (identifier) @name
    (generic_type (identifier) @name)
  ])) @declaration.type

; Variables of the module and of classes, also under conditions. Those of functions are left out afterwards.
(expression_statement
  (assignment left: (identifier) @name) @declaration.variable)

(expression_statement
  (assignment right: (assignment left: (identifier) @name)) @declaration.variable)

(expression_statement
  (assignment right: (assignment right: (assignment left: (identifier) @name))) @declaration.variable)

(expression_statement
  (assignment left: (pattern_list (identifier) @name)) @declaration.variable)

; Attributes that the constructor sets, unless it does so under a condition.
((function_definition
  name: (identifier) @_constructor
  parameters: (parameters . (identifier) @_self)
  body: (block (expression_statement
    (assignment left: (attribute
      object: (identifier) @_object
      attribute: (identifier) @name)) @declaration.field)))
  (#eq? @_constructor "__init__")
  (#eq? @_object @_self))
