package warm

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/kates-go/kates/internal/client/wire/ordered"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// Warmth is how the streams of a set are kept from one process to the next.
type Warmth struct {
	Store files.Store
	Codec files.Codec
	// Every is about how often a stream is written that has changed.
	Every time.Duration
	// Origin says which server a resource comes from now. While it returns an error, streams are
	// neither kept nor begun from a file. An error that wraps
	// [ErrNoOrigin] is final: no stream is begun from a file.
	Origin func(ctx context.Context, r object.Resource) (files.Origin, error)
	// Wait is how long a watch may take to reach the present. 0: 10 s.
	Wait time.Duration
	// Helpers unpack objects side by side. Nil: nobody does.
	Helpers *ordered.Pool
}

// ErrNoOrigin says that the server will not say which one it is.
var ErrNoOrigin = errors.New("it is not known which cluster this is")

const (
	// FileMost is how old a file may be (W4). Servers forget versions after 5 to 10 minutes, and
	// those that keep them for longer are rare.
	FileMost = 30 * time.Minute
	// catchMost bounds the time in which the watch has to reach the present: a file never makes a
	// start hang.
	catchMost = 10 * time.Second
)

// doubtful is why a file is of no use. Another try does not change that.
type doubtful string

func (d doubtful) Error() string { return string(d) }

const (
	noFile       = doubtful("nothing is kept of it")
	fromContents = doubtful("the server has no versions")
	transforms   = doubtful("its objects are chosen, judged or transformed by a function, which may be another one now")
	ofSecrets    = doubtful("Secrets are kept only with a key")
	unpackable   = doubtful("its objects cannot be packed")
)

// codec is how the files of an identity are written and read.
func (w *Warmth) codec(of files.Identity) files.Codec {
	c := w.Codec
	c.Member = of.Member
	return c
}

// missing turns the error of a store that has no such file into one that says so.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return noFile
	}
	return err
}
