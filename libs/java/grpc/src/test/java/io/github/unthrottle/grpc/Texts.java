package io.github.unthrottle.grpc;

import io.grpc.MethodDescriptor;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Methods whose messages are texts. */
final class Texts {
    private static final MethodDescriptor.Marshaller<String> TEXT = new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(String text) {
            return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream in) {
            try {
                return new String(in.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
    };

    private Texts() {}

    static MethodDescriptor<String, String> method(String name) {
        return MethodDescriptor.newBuilder(TEXT, TEXT).setType(MethodDescriptor.MethodType.UNARY).setFullMethodName("s/" + name).build();
    }
}
