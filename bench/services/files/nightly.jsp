<%@ page import="java.util.*" contentType="text/plain" session="false" %><%!
    // A batch beside the pages: a timer writes an export again and again.
    static final Timer nightly = new Timer();
    static volatile int exported;
    static {
        nightly.scheduleAtFixedRate(new TimerTask() {
            public void run() {
                java.util.zip.Deflater d = new java.util.zip.Deflater(9);
                byte[] in = new byte[4 << 20], out = new byte[1 << 20];
                Random of = new Random(1);
                for (int i = 0; i < in.length; i++) in[i] = (byte) "0123456789abcdef".charAt(of.nextInt(16));
                d.setInput(in);
                d.finish();
                int n = 0;
                while (!d.finished()) n += d.deflate(out);
                d.end();
                exported += n;
            }
        }, 0, 400);
    }
%>hello, <%= exported > 0 ? "exported" : "not yet" %>
