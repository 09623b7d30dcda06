(function_item name: (identifier) @name body: (_) @body) @declaration.function
(function_signature_item name: (identifier) @name) @declaration.function

(struct_item name: (type_identifier) @name) @declaration.struct
(struct_item name: (type_identifier) @name body: (field_declaration_list) @body)
(union_item name: (type_identifier) @name body: (_) @body) @declaration.struct
(field_declaration name: (field_identifier) @name) @declaration.field

(enum_item name: (type_identifier) @name body: (_) @body) @declaration.enum
(enum_variant name: (identifier) @name) @declaration.enum_member

(trait_item name: (type_identifier) @name body: (_) @body) @declaration.trait
(trait_item
  name: (type_identifier) @name
  bounds: (trait_bounds [(type_identifier) (scoped_type_identifier) (generic_type)] @base))
(associated_type name: (type_identifier) @name) @declaration.type

; A block is named after its type.
(impl_item
  type: [
    (type_identifier) @name
    (primitive_type) @name
    (generic_type type: (type_identifier) @name)
    (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
    (scoped_type_identifier name: (type_identifier) @name)
    (reference_type type: (type_identifier) @name)
    (reference_type type: (generic_type type: (type_identifier) @name))
    (dynamic_type trait: (type_identifier) @name)
  ]
  body: (_) @body) @declaration.impl
(impl_item
  trait: (_) @base
  type: [
    (type_identifier) @name
    (primitive_type) @name
    (generic_type type: (type_identifier) @name)
    (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
    (scoped_type_identifier name: (type_identifier) @name)
    (reference_type type: (type_identifier) @name)
    (reference_type type: (generic_type type: (type_identifier) @name))
    (dynamic_type trait: (type_identifier) @name)
  ])

(type_item name: (type_identifier) @name) @declaration.type
(const_item name: (identifier) @name) @declaration.constant
(static_item name: (identifier) @name) @declaration.variable
(mod_item name: (identifier) @name) @declaration.module
(mod_item name: (identifier) @name body: (_) @body)
(macro_definition name: (identifier) @name) @declaration.macro
