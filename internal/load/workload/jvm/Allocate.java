/** Allocates for a while and rests, in turn, until its standard input ends. */
public final class Allocate extends Thread {
    static volatile byte[] latest;

    /** Ends the process when its parent is gone. */
    @Override
    public void run() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (java.io.IOException gone) {
            // the same as its end
        }
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] args) throws Exception {
        final long live = Long.parseLong(args[0]);
        final long run = Long.parseLong(args[1]), sleep = Long.parseLong(args[2]);
        final int size = 1024;
        final byte[][] kept = new byte[(int) Math.max(1, live / size)][];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new byte[size];
        }
        System.out.println("ready");
        if (System.in.read() != 'g') {
            Runtime.getRuntime().halt(0);
        }
        Thread watch = new Allocate();
        watch.setDaemon(true);
        watch.start();
        for (long n = 0;;) {
            for (long end = System.nanoTime() + run; System.nanoTime() < end;) {
                for (int i = 0; i < 64; i++, n++) {
                    latest = new byte[size];
                    // One of eight takes the place of an old one, so that old data dies too.
                    if (n % 8 == 0) {
                        kept[(int) (n / 8 % kept.length)] = latest;
                    }
                }
            }
            Thread.sleep(sleep / 1000000, (int) (sleep % 1000000));
        }
    }
}
