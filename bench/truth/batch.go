package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

func podSidecar() testCase {
	return testCase{
		name:  "pod-memcached-xz",
		truth: "A pod's limit holds for memcached, which answers 1,000 gets a second, and for a sidecar that compresses logs with two threads of xz. The sidecar spends the pod's quota, memcached waits.",
		limit: 0.8, pod: true,
		causes:  []string{"ancestor"},
		guilty:  []string{"sidecar"},
		suffers: []string{"memcached", "mc-worker", "main"},
		needs:   []need{{"memcached", "memcached"}, {"xz", "xz-utils"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			sidecar, err := s.group(s.limited, "sidecar")
			if err != nil {
				return service{}, err
			}
			log, err := s.file("access.log", pageOfText(4_000_000))
			if err != nil {
				return service{}, err
			}
			loop := "while :; do xz -k -T 2 --block-size=1MiB -c " + log + " >/dev/null; done"
			if err := s.start(program{in: sidecar, args: []string{"/bin/sh", "-c", loop}}); err != nil {
				return service{}, err
			}
			return startMemcached(ctx, s, 1000)
		},
	}
}

func thumbnails() testCase {
	return testCase{
		name:   "imagemagick-thumbnails",
		truth:  "ImageMagick makes one thumbnail after another, with OpenMP's threads. It wants all the CPU it can get, and no one waits for an answer: only more CPU helps.",
		limit:  0.7,
		causes: []string{"shortage"},
		guilty: []string{"convert"},
		needs:  []need{{"convert-im6.q16", "imagemagick-6.q16"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			draw := program{args: []string{"convert-im6.q16", "-size", "1200x1200", "plasma:fractal", s.dir + "/photo.png"}}
			if err := s.prepare(ctx, draw); err != nil {
				return service{}, err
			}
			loop := "while :; do convert-im6.q16 photo.png -blur 0x4 -resize 300x300 thumbnail.png && echo done >> built; done"
			return service{done: s.built}, s.start(program{args: []string{"/bin/sh", "-c", loop}})
		},
	}
}

// built counts the lines that units of work left in the file of that name.
func (s *stage) built() float64 {
	text, _ := os.ReadFile(filepath.Join(s.dir, "built")) // none yet: nothing was built
	return float64(strings.Count(string(text), "\n"))
}

//go:embed files/build.mk
var buildMk string

func makeBuild() testCase {
	return testCase{
		name:   "make-gcc",
		truth:  "make -j 4 compiles C files with gcc, again and again. It wants all the CPU it can get, and no one waits for an answer: only more CPU helps.",
		limit:  1,
		causes: []string{"shortage"},
		guilty: []string{"cc", "make"},
		needs:  []need{{"make", "make"}, {"gcc", "gcc"}},
		start: func(_ context.Context, s *stage) (service, error) {
			makefile, err := s.file("build.mk", buildMk)
			if err != nil {
				return service{}, err
			}
			loop := "while :; do make -s -j 4 -f " + makefile + "; done"
			return service{done: s.built}, s.start(program{args: []string{"/bin/sh", "-c", loop}})
		},
	}
}
