(namespace_declaration name: (identifier) @name body: (_) @body) @declaration.namespace
(namespace_declaration
  name: (qualified_name qualifier: (_) @qualifier name: (identifier) @name)
  body: (_) @body) @declaration.namespace
(file_scoped_namespace_declaration name: (identifier) @name) @declaration.namespace
(file_scoped_namespace_declaration
  name: (qualified_name qualifier: (_) @qualifier name: (identifier) @name)) @declaration.namespace

(class_declaration name: (identifier) @name) @declaration.class
(class_declaration name: (identifier) @name body: (_) @body)
(class_declaration name: (identifier) @name (base_list (_) @base))
(record_declaration name: (identifier) @name) @declaration.class
(record_declaration name: (identifier) @name body: (_) @body)
(record_declaration name: (identifier) @name (base_list (_) @base))
(record_declaration (parameter_list (parameter name: (identifier) @name) @declaration.property))
(struct_declaration name: (identifier) @name) @declaration.struct
(struct_declaration name: (identifier) @name body: (_) @body)
(struct_declaration name: (identifier) @name (base_list (_) @base))
(interface_declaration name: (identifier) @name) @declaration.interface
(interface_declaration name: (identifier) @name body: (_) @body)
(interface_declaration name: (identifier) @name (base_list (_) @base))
(enum_declaration name: (identifier) @name body: (_) @body) @declaration.enum
(enum_member_declaration name: (identifier) @name) @declaration.enum_member
(delegate_declaration name: (identifier) @name) @declaration.type

(method_declaration name: (identifier) @name) @declaration.method
(method_declaration name: (identifier) @name body: (_) @body)
(local_function_statement name: (identifier) @name body: (_) @body) @declaration.function
(constructor_declaration name: (identifier) @name) @declaration.constructor
(constructor_declaration name: (identifier) @name body: (_) @body)
(operator_declaration operator: _ @name body: (_) @body) @declaration.method
(property_declaration name: (identifier) @name) @declaration.property
(property_declaration name: (identifier) @name accessors: (_) @body)
((indexer_declaration accessors: (_) @body) @declaration.property (#set! name "this"))
(event_declaration name: (identifier) @name) @declaration.field
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @declaration.field
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @declaration.field
((field_declaration
  (modifier) @_const
  (variable_declaration (variable_declarator name: (identifier) @name))) @declaration.constant
  (#eq? @_const "const"))
