(function_declaration name: (identifier) @name) @declaration.function
(function_declaration name: (identifier) @name body: (_) @body)

(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @qualifier
    (generic_type type: (type_identifier) @qualifier)
    (pointer_type (type_identifier) @qualifier)
    (pointer_type (generic_type type: (type_identifier) @qualifier))
  ]))
  name: (field_identifier) @name) @declaration.method
(method_declaration name: (field_identifier) @name body: (_) @body)

(type_spec name: (type_identifier) @name) @declaration.type
(type_alias name: (type_identifier) @name) @declaration.type
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @declaration.struct
(type_spec name: (type_identifier) @name type: (interface_type) @body) @declaration.interface

(field_declaration name: (field_identifier) @name) @declaration.field
(type_spec
  name: (type_identifier) @name
  type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base))))
(method_elem name: (field_identifier) @name) @declaration.method
(type_spec
  name: (type_identifier) @name
  type: (interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .)))

; Not `name:`, which finds only the first of several.
(source_file (const_declaration (const_spec (identifier) @name) @declaration.constant))
(source_file (var_declaration (var_spec (identifier) @name) @declaration.variable))
(source_file (var_declaration (var_spec_list (var_spec (identifier) @name) @declaration.variable)))
