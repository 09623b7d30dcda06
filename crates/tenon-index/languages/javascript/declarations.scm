[
  (function_declaration name: (identifier) @name body: (_) @body)
  (generator_function_declaration name: (identifier) @name body: (_) @body)
] @declaration.function

(class_declaration name: (identifier) @name body: (_) @body) @declaration.class
(class_declaration name: (identifier) @name (class_heritage (_) @base))

; Variables of the module.
(program (lexical_declaration kind: "let"
  (variable_declarator name: (identifier) @name) @declaration.variable))
(program (lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name) @declaration.constant))
(program (variable_declaration
  (variable_declarator name: (identifier) @name) @declaration.variable))
(program (export_statement declaration: (lexical_declaration kind: "let"
  (variable_declarator name: (identifier) @name) @declaration.variable)))
(program (export_statement declaration: (lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name) @declaration.constant)))
(program (export_statement declaration: (variable_declaration
  (variable_declarator name: (identifier) @name) @declaration.variable)))

; Variables of the module, from an object or an array.
(program (lexical_declaration (variable_declarator name: (object_pattern [
  (shorthand_property_identifier_pattern) @name
  (pair_pattern value: (identifier) @name)
  (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
  (rest_pattern (identifier) @name)
])) @declaration.constant))
(program (export_statement declaration: (lexical_declaration (variable_declarator name: (object_pattern [
  (shorthand_property_identifier_pattern) @name
  (pair_pattern value: (identifier) @name)
  (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
  (rest_pattern (identifier) @name)
])) @declaration.constant)))
(program (lexical_declaration
  (variable_declarator name: (array_pattern (identifier) @name)) @declaration.constant))
(program (export_statement declaration: (lexical_declaration
  (variable_declarator name: (array_pattern (identifier) @name)) @declaration.constant)))

; Functions and classes as values, anywhere.
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @declaration.function
(variable_declarator
  name: (identifier) @name
  value: (class body: (_) @body)) @declaration.class
(variable_declarator
  name: (identifier) @name
  value: (class (class_heritage (_) @base)))

(program (expression_statement (assignment_expression
  left: (member_expression object: (_) @qualifier property: (_) @name)
  right: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
    (generator_function body: (_) @body)
  ]) @declaration.function))
(program (expression_statement (assignment_expression
  left: (member_expression object: (_) @qualifier property: (_) @name)
  right: (class body: (_) @body)) @declaration.class))

; Without a name.
((export_statement
  "default"
  value: [
    (arrow_function body: (_) @body)
    (function_expression !name body: (_) @body)
    (generator_function !name body: (_) @body)
  ] @declaration.function)
  (#set! name "default"))
((export_statement
  "default"
  value: (class !name body: (_) @body) @declaration.class)
  (#set! name "default"))
((export_statement
  "default"
  value: (class !name (class_heritage (_) @base)) @declaration.class)
  (#set! name "default"))
((export_statement "default" value: (object) @body @declaration.constant)
  (#set! name "default"))

; Members of classes.
(class_body (method_definition name: (_) @name body: (_) @body) @declaration.method)
(class_body (method_definition ["get" "set"] name: (_) @name) @declaration.property)
(class_body (field_definition property: (_) @name) @declaration.field)
(class_body (field_definition
  property: (_) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @declaration.method)
(class_body (method_definition
  name: (property_identifier) @_constructor
  body: (statement_block (expression_statement
    (assignment_expression
      left: (member_expression object: (this) property: (_) @name)) @declaration.field)))
  (#eq? @_constructor "constructor"))

; Functions of an object that is a value of the module.
(program (lexical_declaration (variable_declarator value: (object
  (method_definition name: (_) @name body: (_) @body) @declaration.method))))
(program (lexical_declaration (variable_declarator value: (object
  (pair key: (_) @name value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @declaration.method))))
(program (export_statement declaration: (lexical_declaration (variable_declarator value: (object
  (method_definition name: (_) @name body: (_) @body) @declaration.method)))))
(program (export_statement declaration: (lexical_declaration (variable_declarator value: (object
  (pair key: (_) @name value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @declaration.method)))))
(export_statement "default" value: (object
  (method_definition name: (_) @name body: (_) @body) @declaration.method))
(export_statement "default" value: (object
  (pair key: (_) @name value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @declaration.method))
((program (expression_statement (assignment_expression
  left: (member_expression) @_exports
  right: (object
    (method_definition name: (_) @name body: (_) @body) @declaration.method))))
  (#eq? @_exports "module.exports"))
((program (expression_statement (assignment_expression
  left: (member_expression) @_exports
  right: (object
    (pair key: (_) @name value: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
    ]) @declaration.method))))
  (#eq? @_exports "module.exports"))
