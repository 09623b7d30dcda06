using System;

namespace Example.Items
{
    /// <summary>
    /// A service.
    /// </summary>
    [Serializable]
    [Obsolete("x")]
    public sealed partial class Service<T> : Base<T>, IService, System.IDisposable where T : class
    {
        public const int Max = 10;
        private readonly string _name, _alias;
        public event EventHandler Changed;

        /// <summary>Makes one.</summary>
        public Service(string name) : base(name)
        {
            var local = 1;
            int Inner(int x) => x;
        }

        ~Service() { }

        public string Name { get; set; }
        public int Size => 1;
        public T this[int index] { get => default; }

        public async Task<R> FetchAsync<R>(
            string url, // where
            CancellationToken token = default)
        {
            return default;
        }

        public override string ToString() => "x";
        public static Service<T> operator +(Service<T> a, Service<T> b) => a;
        public static implicit operator bool(Service<T> s) => true;

        [Fact]
        public void Works() { }

        private class Nested { }
    }

    public interface IService : IDisposable
    {
        void Run();
        int Count { get; }
    }

    public struct Point { public int X; }
    public enum Level { Low, High = 2 }
    public delegate void Handler(object sender);
    public record Person(string First, string Last) : Base;
    public record struct Pair(int A);
}
