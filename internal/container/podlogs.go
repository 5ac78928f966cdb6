package container

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/unthrottle/unthrottle/internal/container/names"
)

// maxLogEntries bounds what is read of a log folder.
const maxLogEntries = 1 << 16

// podNames are the names in the node's log folders, which need no API.
type podNames struct {
	pods       map[string]podName // by pod uid
	containers map[string]string  // Kubernetes' container name by container id
}

type podName struct{ namespace, pod string }

// readPodNames reads VarLog/pods/<namespace>_<pod>_<uid> and VarLog/containers/<pod>_<namespace>_<container>-<id>.log
// (kubelet: pkg/kubelet/kuberuntime/helpers.go BuildPodLogsDirectory, legacy.go logSymlink). It skips unreadable ones.
func readPodNames(varLog string) podNames {
	found := podNames{pods: map[string]podName{}, containers: map[string]string{}}
	if varLog == "" {
		return found
	}
	forEachName(filepath.Join(varLog, "pods"), func(entry string) {
		if f := strings.Split(entry, "_"); len(f) == 3 && names.IsDNS(f[0]) && names.IsDNS(f[1]) {
			found.pods[f[2]] = podName{f[0], f[1]}
		}
	})
	forEachName(filepath.Join(varLog, "containers"), func(entry string) {
		f := strings.Split(strings.TrimSuffix(entry, ".log"), "_")
		if len(f) != 3 {
			return
		}
		if i := strings.LastIndexByte(f[2], '-'); i > 0 && names.IsID(f[2][i+1:]) && names.IsDNS(f[2][:i]) {
			found.containers[f[2][i+1:]] = f[2][:i]
		}
	})
	return found
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
