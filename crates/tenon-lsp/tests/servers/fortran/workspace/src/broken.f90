module broken
  use missing_module
  implicit none
contains
  subroutine double(value)
    integer, intent(inout) :: value
    integer :: value
    value = value * 2
  end subroutine double
end module broken
