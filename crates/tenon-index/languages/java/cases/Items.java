package org.example.items;

import java.util.List;

/**
 * A service.
 *
 * @since 1.0
 */
@Service
@SuppressWarnings({"unchecked", "raw"})
public abstract class Items<T extends Comparable<T>> extends Base<T> implements Runnable, java.io.Closeable {
    public static final int MAX_SIZE = 10;
    private String name, alias;
    protected final List<T> values = new ArrayList<>();

    static { System.out.println("static"); }

    /** Makes one. */
    public Items(String name) {
        int local = 1;
        this.name = name;
    }

    @Override
    public void run() {
        Runnable r = new Runnable() {
            @Override public void run() {}
        };
        class Local { void inside() {} }
    }

    public abstract <R> R visit(
        Visitor<R> visitor, // who
        int depth) throws IOException;

    int overloaded(int a) { return a; }
    int overloaded(String a) { return 0; }

    @Test
    void works() {}

    interface Visitor<R> extends Function<Object, R>, Marker {
        int CONSTANT = 1;
        R accept(Object o);
        default void rest() {}
    }

    enum Level implements Marker {
        LOW(1) { @Override int weight() { return 0; } },
        HIGH(2);

        private final int weight;
        Level(int weight) { this.weight = weight; }
        int weight() { return weight; }
    }

    record Point(int x, int y) implements Marker {
        Point { if (x < 0) throw new IllegalArgumentException(); }
        static Point origin() { return new Point(0, 0); }
    }

    @interface Config { String value() default ""; }

    static class Nested { class Inner {} }
}
