package main

import (
	"context"
	_ "embed"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/Shop.java
var shopJava string

func jvmGC() testCase {
	return testCase{
		name:    "jvm-gc",
		truth:   "The JDK's own HTTP server answers 200 requests a second on eight threads, each of which leaves a MB of garbage and keeps sessions. The parallel collector's four threads spend the quota in bursts, the requests wait.",
		limit:   0.8,
		causes:  []string{"burst", "pool"},
		guilty:  []string{"GC Thread", "CompilerThre"},
		suffers: []string{"pool-", "HTTP"},
		needs:   []need{{"java", "openjdk-17-jdk-headless"}},
		start:   startJVM,
	}
}

func startJVM(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("Shop.java", shopJava)
	if err != nil {
		return service{}, err
	}
	args := []string{"java", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=4", "-XX:ActiveProcessorCount=4", "-Xmx256m", "-Xms256m",
		"-Dsun.net.httpserver.nodelay=true", script, port}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 200}}, requests: []request{page}, connections: 32,
	}, s.ready(ctx, page)
}
