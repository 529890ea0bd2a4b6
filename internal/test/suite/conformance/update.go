package conformance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Update runs the cases of some topics, or all, on the real server, and writes their answers into
// a folder. workers is how many run at once. Cases that compact run on a server of their own, as
// [CheckCompaction] says.
func Update(ctx context.Context, server, compacted Server, folder string, workers int, topics ...string) error {
	for _, s := range []Server{server, compacted} {
		if err := Setup(ctx, s); err != nil {
			return err
		}
	}
	cases, err := Cases()
	if err != nil {
		return err
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool { return len(topics) > 0 && !slices.Contains(topics, c.Topic) })
	answers, failed := make([]string, len(cases)), make([]error, len(cases))
	var running sync.WaitGroup
	room := make(chan struct{}, workers)
	for i, c := range cases {
		if c.Alone {
			continue
		}
		room <- struct{}{}
		running.Go(func() {
			answers[i], failed[i] = Run(ctx, server, c)
			<-room
		})
	}
	running.Wait()
	for i, c := range cases {
		if c.Alone {
			answers[i], failed[i] = Run(ctx, compacted, c)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return write(folder, cases, answers)
}

// write writes the answers, a file for each topic.
func write(folder string, cases []Case, answers []string) error {
	texts := map[string]string{}
	for i, c := range cases {
		texts[c.Topic] += "=== " + c.Name + "\n" + answers[i] + "\n"
	}
	for topic, text := range texts {
		file := filepath.Join(folder, topic+".answers")
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(text, "\n")), 0o644); err != nil {
			return err
		}
	}
	return nil
}
