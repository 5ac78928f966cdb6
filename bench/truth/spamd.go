package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func spamdMails() testCase {
	return testCase{
		name:    "spamd-mails",
		truth:   "SpamAssassin's spamd checks four mails at once, eight times a second, some 13 ms each, in four pre-forked children. The children run on all CPUs and spend the quota early; the mean use is below the limit.",
		limit:   0.7,
		causes:  []string{"burst"},
		guilty:  []string{"spamd"},
		suffers: []string{"spamd"},
		needs:   []need{{"spamd", "spamd"}, {spamRules, "spamassassin"}},
		start:   startSpamd,
	}
}

const spamRules = "/usr/share/spamassassin"

const spamPlugins = `loadplugin Mail::SpamAssassin::Plugin::Check
loadplugin Mail::SpamAssassin::Plugin::BodyEval
loadplugin Mail::SpamAssassin::Plugin::HeaderEval
loadplugin Mail::SpamAssassin::Plugin::MIMEEval
`

const mail = `Received: from mail.shop.test (mail.shop.test [192.0.2.7]) by mx.example.com with ESMTP id 1; Mon, 2 Mar 2026 10:00:00 +0000
Date: Mon, 2 Mar 2026 10:00:00 +0000
From: Shop <shop@shop.test>
To: Ada <ada@example.com>
Subject: Your order
Message-ID: <1@shop.test>
MIME-Version: 1.0
Content-Type: text/plain; charset=us-ascii

Dear Ada, thank you for your order. It leaves our warehouse tomorrow.
`

func startSpamd(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	rules, site := filepath.Join(s.dir, "rules"), filepath.Join(s.dir, "site")
	for _, dir := range []string{rules, site} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return service{}, err
		}
	}
	for _, name := range []string{"20_aux_tlds.cf", "20_head_tests.cf", "20_body_tests.cf"} {
		if err := os.Symlink(filepath.Join(spamRules, name), filepath.Join(rules, name)); err != nil {
			return service{}, err
		}
	}
	if _, err := s.file("site/init.pre", spamPlugins); err != nil {
		return service{}, err
	}
	args := []string{"spamd", "--local", "--nouser-config", "--username=nobody", "--listen=" + addr, "--max-children=4", "--min-children=4",
		"--configpath=" + rules, "--siteconfigpath=" + site, "--syslog=stderr"}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	// The dialog adds a line's end.
	check := request{Protocol: protocolSpamc, Addr: addr, Text: fmt.Sprintf("CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n%s", len(mail)+1, mail)}
	return service{
		streams: []loadgen.Stream{{Name: "mail", PerSecond: 32, Burst: 4}}, requests: []request{check},
	}, s.ready(ctx, check)
}
