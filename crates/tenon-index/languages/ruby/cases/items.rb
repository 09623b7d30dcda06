# frozen_string_literal: true

require "set"

LIMIT = 10
$global = 1
local = 2

# Greets people.
module Greeting
  DEFAULT = "hi"

  class Error < StandardError; end
  Point = Struct.new(:x, :y) do
    def length; end
  end

  # A person.
  class Person < Base::Entity
    include Comparable
    extend Forwardable

    attr_accessor :name, :age
    attr_reader :id

    def initialize(name, age: 0, &block)
      @name = name
      local = 1
    end

    # Compares.
    def <=>(other)
      name <=> other.name
    end

    def self.create(**options) = new(**options)

    class << self
      def build; end
    end

    def valid?; true; end
    def name=(value); @name = value; end

    private

    def secret!; end

    define_method(:dynamic) { 1 }
  end
end

class Greeting::Visitor < Greeting::Person
  def visit; end
end

module A::B; end

def top_level(a, b = 2, *rest)
  nested = lambda { |x| x }
end

class PersonTest < Minitest::Test
  def test_name; end
end
