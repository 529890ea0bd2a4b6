package katestest

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/apipath"
	"github.com/kates-go/kates/kates/katestest/internal/recording"
)

// Recorder records what the clients of a configuration read. [Record] makes one.
type Recorder struct{ writer *recording.Writer }

// Record makes a file of what clients read from their API server: lists and watches, single
// objects, discovery, OpenAPI and the version, with their times. [Replay] plays it back, so a bug
// that somebody saw once becomes a test:
//
//	recorder, err := katestest.Record(config, "rollout.recording") // before a client is made of it
//	...
//	err = recorder.Close() // after the clients have ended
//
// Record changes the configuration, by its Wrap. An existing file is replaced. The format is in
// docs/recording.md; it is compressed.
//
// Secrets stay out of the file. It has no headers of requests, and neither writes nor their
// answers, logs, or what goes through a proxy. The values of a Secret's data, and of its
// annotations, are replaced: equal values by equal texts, others by others. An answer that has a
// bearer token of the client is left out. [Redact] is for what else is secret. What cannot be
// redacted, such as a table, or an answer to a path that is none of the API's below the
// configuration's Host, is left out, and the file says so; a replay refuses these objects.
// Names, labels, config maps and the environment of containers are in the file as they are: look
// at it (zcat) before you hand it to others.
//
// A recorder never disturbs the program: what cannot be written is an error of Close. When the
// program crashes, the file is readable up to there. The answer to a list is in memory until it
// has been read to its end. The recorder has one goroutine, which ends on Close. It is safe for
// concurrent use, and works inside a synctest bubble.
func Record(config *rest.Config, file string, options ...RecordOption) (*Recorder, error) {
	if config == nil {
		return nil, errors.New("record: the configuration is nil")
	}
	c := recordConfig{secrets: true}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("record: an option is nil")
		}
		option(&c)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	w := recording.NewWriter(f)
	config.Wrap(recording.NewRecorder(w, apipath.Base(config), c.secrets, c.redact()).Wrap)
	return &Recorder{w}, nil
}

// Close ends the recording and waits until the file is written. What clients read later is not
// recorded. The error is the first one that there was with the file; it is then readable up to
// there. A second Close is an error.
func (r *Recorder) Close() error { return r.writer.Close() }

// RecordOption says what a [Recorder] leaves out.
type RecordOption func(*recordConfig)

type recordConfig struct {
	secrets   bool
	functions []func(*unstructured.Unstructured)
}

// redact is all functions in one, or nil.
func (c *recordConfig) redact() func(*unstructured.Unstructured) {
	if len(c.functions) == 0 {
		return nil
	}
	return func(u *unstructured.Unstructured) {
		for _, f := range c.functions {
			f(u)
		}
	}
}

// Redact calls a function with a copy of each object before it is recorded. What the function
// changes is changed in the file, also where the object came in protobuf, but its identity (kind,
// namespace, name, uid, resourceVersion) must stay. If it panics, the object is left out. Several
// goroutines may call it at once. With such a function each object is decoded, which takes time.
func Redact(f func(object *unstructured.Unstructured)) RecordOption {
	return func(c *recordConfig) { c.functions = append(c.functions, f) }
}

// WithSecrets records Secrets as they are: for clusters whose Secrets are nobody's.
func WithSecrets() RecordOption { return func(c *recordConfig) { c.secrets = false } }
