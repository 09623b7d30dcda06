# Comment with a byte order mark.
class Crlf:
	"""Doc of a tabbed class."""

	def method(self):  # trailing
		return "😀"


name = "😀"; second = 2
