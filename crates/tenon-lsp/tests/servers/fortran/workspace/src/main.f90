program main
  use shapes, only: area
  implicit none
  real :: total
  total = area(2.0) + area(3.0)
  print *, total
end program main
