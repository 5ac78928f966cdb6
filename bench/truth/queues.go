package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func beanstalkdHealthy() testCase {
	return testCase{
		name:    "beanstalkd-healthy",
		truth:   "beanstalkd takes and deletes 500 jobs a second within a limit of which it uses a tenth. Nothing is wrong.",
		limit:   0.5,
		healthy: true,
		needs:   []need{{"beanstalkd", "beanstalkd"}},
		start:   startBeanstalkd,
	}
}

func startBeanstalkd(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"beanstalkd", "-l", "127.0.0.1", "-p", port}}); err != nil {
		return service{}, err
	}
	job := request{Protocol: protocolBeanstalk, Addr: addr, Text: "send order # to the warehouse", Keys: 1000}
	return service{streams: []loadgen.Stream{{Name: "job", PerSecond: 500}}, requests: []request{job}}, s.ready(ctx, job)
}

const mosquittoConfig = `listener %[2]s 127.0.0.1
allow_anonymous true
user root
persistence false
log_type error
`

func podBackup() testCase {
	return testCase{
		name:  "pod-mosquitto-borg",
		truth: "A pod's limit holds for the broker Mosquitto, which acknowledges 300 messages a second, and for a sidecar in which borg makes compressed backups without a pause. The sidecar spends the pod's quota, the broker waits.",
		limit: 0.5, pod: true,
		causes:  []string{"ancestor"},
		guilty:  []string{"sidecar"},
		suffers: []string{"mosquitto", "main"},
		needs:   []need{{"mosquitto", "mosquitto"}, {"borg", "borgbackup"}},
		start:   startMosquitto,
	}
}

// backups makes a new repository each time, so that borg finds nothing saved already.
const backups = `while :; do rm -rf repository; borg init -e none repository; borg create --compression lzma,6 repository::now data; done`

func startMosquitto(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	config, err := s.file("mosquitto.conf", fmt.Sprintf(mosquittoConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if _, err := s.file("data", pageOfText(16_000_000)); err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"mosquitto", "-c", config}}); err != nil {
		return service{}, err
	}
	sidecar, err := s.group(s.limited, "sidecar")
	if err != nil {
		return service{}, err
	}
	settings := []string{"BORG_BASE_DIR=" + filepath.Join(s.dir, "borg"), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes", "BORG_RELOCATED_REPO_ACCESS_IS_OK=yes"}
	if err := s.start(program{in: sidecar, args: []string{"/bin/sh", "-c", backups}, env: settings}); err != nil {
		return service{}, err
	}
	message := request{Protocol: protocolMQTT, Addr: addr, Text: "20.5 degrees"}
	return service{streams: []loadgen.Stream{{Name: "message", PerSecond: 300}}, requests: []request{message}}, s.ready(ctx, message)
}
