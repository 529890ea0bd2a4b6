package main

import (
	"regexp"
	"strconv"
	"strings"
)

// outcome is what the output of go test says of one fuzz test.
type outcome struct {
	execs int64
	late  bool   // it failed by the end of its time, and by nothing else
	text  string // the output without the lines on its progress
}

// progress is a line like "fuzz: elapsed: 3s, execs: 33250 (6228/sec), new interesting: 7", or, at
// the beginning, "fuzz: elapsed: 0s, gathering baseline coverage: 8/8 completed".
var progress = regexp.MustCompile(`^fuzz: elapsed: .*?(?:(?:, execs: | coverage: )(\d+)\b.*)?$`)

// read reads the output of go test -fuzz.
//
// At the end of -fuzztime go test cancels the context of the fuzzing. On a loaded machine it
// sometimes takes this for an error of the fuzz test (https://go.dev/issue/75804). Its output is
// then these lines, with no line of the fuzz test and no failing input:
//
//	--- FAIL: FuzzX (10.02s)
//	    context deadline exceeded
//	FAIL
func read(output string) (o outcome) {
	var rest []string
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if found := progress.FindStringSubmatch(line); found != nil {
			if n, err := strconv.ParseInt(found[1], 10, 64); err == nil {
				o.execs = max(o.execs, n) // each line has the number since the start
			}
			continue
		}
		rest = append(rest, line)
	}
	o.text = strings.Join(rest, "\n")
	if o.text != "" {
		o.text += "\n"
	}
	o.late = late(rest)
	return o
}

// closing is what go test prints after a failure, whatever it is.
var closing = regexp.MustCompile(`^(FAIL(\s.*)?|exit status \d+)$`)

func late(lines []string) bool {
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "--- FAIL: Fuzz") ||
		lines[1] != "    context deadline exceeded" {
		return false
	}
	for _, line := range lines[2:] {
		if !closing.MatchString(line) {
			return false
		}
	}
	return true
}
