// Named starts threads with names of several kinds, says so, and waits to be ended.
public class Named {
    public static void main(String[] args) throws Exception {
        String[] names = {"http-nio-8080-exec-1", "http-nio-8080-exec-12", "short", "a \" #1 nid=0x1 quote",
            "ForkJoinPool.commonPool-worker-3", "line\nbreak"};
        for (String name : names) {
            Thread t = new Thread(() -> {
                try {
                    Thread.sleep(600_000);
                } catch (InterruptedException e) {
                    return;
                }
            }, name);
            t.setDaemon(true);
            t.start();
        }
        System.out.println("ready");
        System.out.flush();
        System.in.read(); // until the program that started us ends
    }
}
