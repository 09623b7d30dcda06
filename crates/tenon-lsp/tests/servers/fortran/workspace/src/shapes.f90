module shapes
  implicit none
contains
  function area(radius) result(square)
    real, intent(in) :: radius
    real :: square
    square = 3.14159 * radius * radius
  end function area
end module shapes
