namespace Example.Scoped;

public static class Extensions
{
    public static bool IsEmpty(this string value) => value.Length == 0;
}

internal abstract class Shape { protected abstract double Area(); }
