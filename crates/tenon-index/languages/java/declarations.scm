(class_declaration name: (identifier) @name body: (_) @body) @declaration.class
(class_declaration name: (identifier) @name superclass: (superclass (_) @base))
(class_declaration name: (identifier) @name interfaces: (super_interfaces (type_list (_) @base)))
(record_declaration name: (identifier) @name body: (_) @body) @declaration.class
(record_declaration name: (identifier) @name interfaces: (super_interfaces (type_list (_) @base)))
(record_declaration parameters: (formal_parameters
  (formal_parameter name: (identifier) @name) @declaration.field))
(interface_declaration name: (identifier) @name body: (_) @body) @declaration.interface
(interface_declaration name: (identifier) @name (extends_interfaces (type_list (_) @base)))
(annotation_type_declaration name: (identifier) @name body: (_) @body) @declaration.interface
(annotation_type_element_declaration name: (identifier) @name) @declaration.method
(enum_declaration name: (identifier) @name body: (_) @body) @declaration.enum
(enum_declaration name: (identifier) @name interfaces: (super_interfaces (type_list (_) @base)))
(enum_constant name: (identifier) @name) @declaration.enum_member

(method_declaration name: (identifier) @name) @declaration.method
(method_declaration name: (identifier) @name body: (_) @body)
(constructor_declaration name: (identifier) @name body: (_) @body) @declaration.constructor
(compact_constructor_declaration name: (identifier) @name body: (_) @body) @declaration.constructor
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @declaration.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @declaration.constant
