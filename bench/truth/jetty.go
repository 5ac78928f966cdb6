package main

import (
	"context"
	_ "embed"
	"strings"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/Reports.java
var reportsJava string

// jettyJars are what Jetty embedded in a program needs.
var jettyJars = []string{
	"/usr/share/java/jetty9-server.jar", "/usr/share/java/jetty9-http.jar", "/usr/share/java/jetty9-io.jar",
	"/usr/share/java/jetty9-util.jar", "/usr/share/java/servlet-api.jar",
}

func jettyReports() testCase {
	return testCase{
		name:    "jetty-reports",
		truth:   "Jetty answers 150 small pages a second on its thread pool, beside two reports a second that a parallel stream computes on Java's common pool. The common pool spends the quota in bursts, the pages wait.",
		limit:   0.6,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"ForkJoin"},
		suffers: []string{"qtp"},
		needs:   []need{{"java", "openjdk-17-jdk-headless"}, {jettyJars[0], "libjetty9-java"}},
		start:   startJetty,
	}
}

func startJetty(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("Reports.java", reportsJava)
	if err != nil {
		return service{}, err
	}
	args := []string{"java", "-XX:ActiveProcessorCount=4", "-Xmx256m", "-cp", strings.Join(jettyJars, ":"), script, port}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	report := request{Protocol: protocolHTTP, Text: "http://" + addr + "/report"}
	return service{
		streams:  []loadgen.Stream{{Name: "page", PerSecond: 150}, {Name: "report", PerSecond: 2, Background: true}},
		requests: []request{page, report}, connections: 32,
	}, s.ready(ctx, report)
}
