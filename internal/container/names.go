package container

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Bounds on log folders and docker's files, which other users may fill.
const (
	maxLogEntries  = 1 << 16
	maxDockerBytes = 4 << 20
)

// podNames are the names in the node's log folders, which need no API.
type podNames struct {
	pods       map[string]podName // by pod uid
	containers map[string]string  // Kubernetes' container name by container id
}

type podName struct{ namespace, pod string }

// readPodNames reads VarLog/pods/<namespace>_<pod>_<uid> and VarLog/containers/<pod>_<namespace>_<container>-<id>.log
// (kubelet: pkg/kubelet/kuberuntime/helpers.go BuildPodLogsDirectory, legacy.go logSymlink). It skips unreadable ones.
func readPodNames(varLog string) podNames {
	names := podNames{pods: map[string]podName{}, containers: map[string]string{}}
	if varLog == "" {
		return names
	}
	forEachName(filepath.Join(varLog, "pods"), func(entry string) {
		if f := strings.Split(entry, "_"); len(f) == 3 && isDNS(f[0]) && isDNS(f[1]) {
			names.pods[f[2]] = podName{f[0], f[1]}
		}
	})
	forEachName(filepath.Join(varLog, "containers"), func(entry string) {
		f := strings.Split(strings.TrimSuffix(entry, ".log"), "_")
		if len(f) != 3 {
			return
		}
		if i := strings.LastIndexByte(f[2], '-'); i > 0 && isID(f[2][i+1:]) && isDNS(f[2][:i]) {
			names.containers[f[2][i+1:]] = f[2][:i]
		}
	})
	return names
}

// forEachName calls fn with the names in a folder, at most maxLogEntries of them.
func forEachName(dir string, fn func(string)) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	for seen := 0; seen < maxLogEntries; {
		entries, err := f.Readdirnames(1024)
		for _, entry := range entries {
			fn(entry)
		}
		seen += len(entries)
		if err != nil {
			return
		}
	}
}

// isDNS accepts what Kubernetes allows in names of namespaces, pods and containers.
func isDNS(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 253
}

// dockerConfig has the fields that we read of docker's containers/<id>/config.v2.json.
type dockerConfig struct {
	Name   string
	Config struct{ Labels map[string]string }
}

// readDocker reads it. False is no error, because a name is optional.
func readDocker(dir, id string) (dockerConfig, bool) {
	var c dockerConfig
	if dir == "" || !isID(id) {
		return c, false
	}
	f, err := os.Open(filepath.Join(dir, "containers", id, "config.v2.json"))
	if err != nil {
		return c, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDockerBytes+1))
	if err != nil || len(data) > maxDockerBytes || json.Unmarshal(data, &c) != nil {
		return c, false
	}
	return c, true
}
