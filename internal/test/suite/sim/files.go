package sim

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/engine/warm/files"
	"github.com/kates-go/kates/internal/object"
)

// Files is a store of warm starts in memory. It can fail, and what is in it can be damaged.
type Files struct {
	mu    sync.Mutex
	files map[string][]byte
	saves []string

	fail func(what, name string) error
	half func(name string) error
}

// Failing makes requests fail, by what they do ("load", "save") and the name; nil ends it.
func (f *Files) Failing(fail func(what, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// Halving makes the writing of a file fail when it is done.
func (f *Files) Halving(half func(name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.half = half
}

// Load opens a file.
func (f *Files) Load(_ context.Context, name string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail("load", name); err != nil {
			return nil, err
		}
	}
	file, ok := f.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(file)), nil
}

// Save keeps a file.
func (f *Files) Save(ctx context.Context, name string, write func(io.Writer) error) error {
	f.mu.Lock()
	fail, half := f.fail, f.half
	f.mu.Unlock()
	if fail != nil {
		if err := fail("save", name); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if half != nil {
		if err := half(name); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = make(map[string][]byte)
	}
	f.files[name] = b.Bytes()
	f.saves = append(f.saves, name[strings.LastIndexByte(name, '.'):])
	return nil
}

// Copy returns a store with the files as they are now.
func (f *Files) Copy() *Files {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Files{files: maps.Clone(f.files)}
}

// Saved returns which files were saved since it was called last, by what their names end in.
func (f *Files) Saved() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.saves
	f.saves = nil
	return all
}

// Edit changes each file whose name ends so. Nil removes it.
func (f *Files) Edit(end string, change func([]byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, file := range f.files {
		if !strings.HasSuffix(name, end) {
			continue
		}
		if file = change(bytes.Clone(file)); file == nil {
			delete(f.files, name)
		} else {
			f.files[name] = file
		}
	}
}

// All returns what is in all files.
func (f *Files) All() (all []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.files {
		all = append(all, file...)
	}
	return all
}

// Len is the number of files.
func (f *Files) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.files)
}

// From is the origin of the simulated server's objects.
var From = files.Origin{Cluster: "sim", Server: "v1", Schema: "1"}

// Warm returns how streams are kept in files: about every minute.
func Warm(f files.Store) *warm.Warmth {
	return &warm.Warmth{
		Store: f, Every: time.Minute,
		Origin: func(context.Context, object.Resource) (files.Origin, error) { return From, nil },
	}
}

// Only returns the file whose name ends so.
func (f *Files) Only(end string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, file := range f.files {
		if strings.HasSuffix(name, end) {
			return file
		}
	}
	return nil
}
