(namespace_definition name: (namespace_name (name) @qualifier (name) @name .)) @declaration.namespace
(namespace_definition name: (namespace_name . (name) @name .)) @declaration.namespace

(class_declaration name: (name) @name body: (_) @body) @declaration.class
(class_declaration name: (name) @name (base_clause (_) @base))
(class_declaration name: (name) @name (class_interface_clause (_) @base))
(class_declaration name: (name) @name body: (declaration_list (use_declaration [(name) (qualified_name)] @base)))
(interface_declaration name: (name) @name body: (_) @body) @declaration.interface
(interface_declaration name: (name) @name (base_clause (_) @base))
(trait_declaration name: (name) @name body: (_) @body) @declaration.trait
(enum_declaration name: (name) @name body: (_) @body) @declaration.enum
(enum_declaration name: (name) @name (class_interface_clause (_) @base))
(enum_case name: (name) @name) @declaration.enum_member

(function_definition name: (name) @name body: (_) @body) @declaration.function
(method_declaration name: (name) @name) @declaration.method
(method_declaration name: (name) @name body: (_) @body)
(property_declaration (property_element name: (variable_name (name) @name))) @declaration.field
(property_promotion_parameter name: (variable_name (name) @name)) @declaration.field
(const_declaration (const_element (name) @name)) @declaration.constant
(program (expression_statement (assignment_expression
  left: (variable_name (name) @name)
  right: [
    (anonymous_function body: (_) @body)
    (arrow_function body: (_) @body)
  ]) @declaration.function))
