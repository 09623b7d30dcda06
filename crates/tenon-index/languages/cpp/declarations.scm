((function_definition
  declarator: [
  (function_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name)))
  (reference_declarator (function_declarator declarator: (identifier) @name))
  (function_declarator declarator: (operator_name) @name)
  (reference_declarator (function_declarator declarator: (operator_name) @name))
  ]
  body: (_)? @body) @declaration.function
  (#not-any-of? @name "TEST" "TEST_F" "TEST_P" "TYPED_TEST"))

; Tests of GoogleTest.
((function_definition
  declarator: (function_declarator
    declarator: (identifier) @_macro
    parameters: (parameter_list
      . (parameter_declaration type: (type_identifier) @qualifier)
      . (parameter_declaration type: (type_identifier) @name)))
  body: (_) @body) @declaration.function
  (#any-of? @_macro "TEST" "TEST_F" "TEST_P" "TYPED_TEST")
  (#set! test))

; Prototypes. Inside a function, `Type name(value);` is a variable.
((declaration declarator: [
  (function_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name)))
  (reference_declarator (function_declarator declarator: (identifier) @name))
  (function_declarator declarator: [(operator_name) (destructor_name)] @name)
  (reference_declarator (function_declarator declarator: (operator_name) @name))
]) @declaration.function
  (#set! never_local))

(struct_specifier name: (type_identifier) @name body: (_) @body) @declaration.struct
(class_specifier name: (type_identifier) @name body: (_) @body) @declaration.class
(struct_specifier name: (type_identifier) @name (base_class_clause
  [(type_identifier) (qualified_identifier) (template_type)] @base))
(class_specifier name: (type_identifier) @name (base_class_clause
  [(type_identifier) (qualified_identifier) (template_type)] @base))
; Specialisations.
(class_specifier
  name: (template_type name: (type_identifier) @name)
  body: (_) @body) @declaration.class
(struct_specifier
  name: (template_type name: (type_identifier) @name)
  body: (_) @body) @declaration.struct
(union_specifier name: (type_identifier) @name body: (_) @body) @declaration.struct
; Outside of their class.
(class_specifier
  name: (qualified_identifier scope: (_) @qualifier name: (type_identifier) @name)
  body: (_) @body) @declaration.class
(class_specifier
  name: (qualified_identifier name: (type_identifier) @name)
  (base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base))
(struct_specifier
  name: (qualified_identifier scope: (_) @qualifier name: (type_identifier) @name)
  body: (_) @body) @declaration.struct
(struct_specifier
  name: (qualified_identifier name: (type_identifier) @name)
  (base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base))
(enum_specifier name: (type_identifier) @name body: (_) @body) @declaration.enum
(enumerator name: (identifier) @name) @declaration.enum_member

(type_definition declarator: [
  (type_identifier) @name
  (pointer_declarator declarator: (type_identifier) @name)
  (array_declarator declarator: (type_identifier) @name)
  (function_declarator declarator: (type_identifier) @name)
  (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (type_identifier) @name)))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (type_identifier) @name))))
]) @declaration.type
(type_definition
  type: (struct_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @declaration.struct
(type_definition
  type: (union_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @declaration.struct
(type_definition
  type: (enum_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @declaration.enum

(field_declaration declarator: [
  (field_identifier) @name
  (pointer_declarator declarator: (field_identifier) @name)
  (pointer_declarator declarator: (pointer_declarator declarator: (field_identifier) @name))
  (array_declarator declarator: (field_identifier) @name)
  (array_declarator declarator: (pointer_declarator declarator: (field_identifier) @name))
  (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (field_identifier) @name)))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (field_identifier) @name))))
]) @declaration.field

; Variables. Those of functions are left out afterwards.
(declaration declarator: [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)
  (array_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (array_declarator declarator: (identifier) @name))
  (init_declarator declarator: (identifier) @name)
  (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))
  (init_declarator declarator: (array_declarator declarator: (identifier) @name))
]) @declaration.variable

; Not the guards of headers, which have no value.
(preproc_def name: (identifier) @name value: (_)) @declaration.macro
(preproc_function_def name: (identifier) @name) @declaration.macro

(namespace_definition name: (namespace_identifier) @name body: (_) @body) @declaration.namespace
(namespace_definition
  name: (nested_namespace_specifier (namespace_identifier) @qualifier . (namespace_identifier) @name .)
  body: (_) @body) @declaration.namespace
(namespace_definition
  name: (nested_namespace_specifier
    (namespace_identifier) @qualifier
    (nested_namespace_specifier (namespace_identifier) @qualifier . (namespace_identifier) @name .))
  body: (_) @body) @declaration.namespace
(alias_declaration name: (type_identifier) @name) @declaration.type
(concept_definition name: (identifier) @name) @declaration.type

; Members inside of their class.
(function_definition
  declarator: [
  (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @name)
  (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
  (pointer_declarator declarator: (pointer_declarator
    declarator: (function_declarator declarator: (field_identifier) @name)))
  (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  (operator_cast) @name
  ]
  body: (_)? @body) @declaration.function
(field_declaration declarator: [
  (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @name)
  (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
  (pointer_declarator declarator: (pointer_declarator
    declarator: (function_declarator declarator: (field_identifier) @name)))
  (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  (operator_cast) @name
]) @declaration.function
(field_declaration declarator: (reference_declarator (field_identifier) @name)) @declaration.field

; Members and functions outside of their class or namespace.
(function_definition
  declarator: [
  (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier name: [(identifier) (destructor_name) (operator_name)] @name))
  (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier name: [(identifier) (operator_name)] @name)))
  (reference_declarator (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier name: [(identifier) (operator_name)] @name)))
  (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier
    name: (qualified_identifier
      scope: (_) @qualifier name: [(identifier) (destructor_name) (operator_name)] @name)))
  (pointer_declarator declarator: (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier
    name: (qualified_identifier
      scope: (_) @qualifier name: [(identifier) (operator_name)] @name))))
  (reference_declarator (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier
    name: (qualified_identifier
      scope: (_) @qualifier name: [(identifier) (operator_name)] @name))))
  (function_declarator declarator: (qualified_identifier
    scope: (_) @qualifier
    name: (qualified_identifier
      scope: (_) @qualifier
      name: (qualified_identifier
        scope: (_) @qualifier name: [(identifier) (destructor_name) (operator_name)] @name))))
  ]
  body: (_)? @body) @declaration.method

; Variables of a class, outside of it.
(declaration declarator: [
  (qualified_identifier scope: (_) @qualifier name: (identifier) @name)
  (array_declarator declarator: (qualified_identifier scope: (_) @qualifier name: (identifier) @name))
  (init_declarator declarator: (qualified_identifier scope: (_) @qualifier name: (identifier) @name))
  (init_declarator declarator: (array_declarator
    declarator: (qualified_identifier scope: (_) @qualifier name: (identifier) @name)))
]) @declaration.variable
