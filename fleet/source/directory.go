package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/fleet"
)

// Directory is a source of the kubeconfig files in a directory: each is a cluster, by its current
// context. The cluster's name is the file's name without its extension. Of files that differ only
// in it the one that has the name keeps it, at first the first in alphabetical order, and the
// status says so.
//
// Hidden files, directories and whatever else is no file are ignored. Symbolic links are followed,
// so a Secret that is mounted as a volume can be the directory. A file that is missing is a
// cluster that leaves. One that cannot be read, or does not parse because it is half written, is
// an error of its cluster, which goes on as it was. The same holds for all clusters if the
// directory cannot be read.
//
// The files are this machine's own, so nothing in them is refused: see [Allow]. Relative paths in
// a file are relative to it. The directory is looked at every 5 seconds ([WithPoll]), and a file
// is read only if its size, time or identity has changed.
func Directory(path string, options ...FileOption) fleet.Source {
	return &directory{poll: newPoll(options...), path: path}
}

type directory struct {
	*poll
	path  string
	names names
}

// file is what was known of a file when it was read.
type file struct {
	stamp
	member fleet.Member
}

// String implements [fleet.Source].
func (d *directory) String() string { return "directory " + d.path }

// Run implements [fleet.Source].
func (d *directory) Run(ctx context.Context, set func([]fleet.Member)) error {
	known := make(map[string]file)
	return d.run(ctx, set, func() ([]fleet.Member, bool, error) {
		present, err := d.list()
		if err != nil {
			return nil, false, err
		}
		news := len(present) != len(known)
		for name, info := range present {
			before, ok := known[name]
			if ok && before.unchanged(info, d.every) {
				continue
			}
			now := file{stamp{info, time.Now()}, d.read(name)}
			news = news || !sameMember(before.member, now.member)
			known[name] = now
		}
		maps.DeleteFunc(known, func(name string, _ file) bool { _, ok := present[name]; return !ok })
		return d.names.settle(claimsOf(known)), news, nil
	})
}

// list returns the files of the directory.
func (d *directory) list() (map[string]fs.FileInfo, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	all := make(map[string]fs.FileInfo)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(d.path, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed, or a link to nothing
		case err != nil:
			all[e.Name()] = nil // read says what is wrong
		case info.Mode().IsRegular():
			all[e.Name()] = info
		}
	}
	return all, nil
}

// read makes a member of a file.
func (d *directory) read(name string) fleet.Member {
	m := fleet.Member{Name: strings.TrimSuffix(name, filepath.Ext(name))}
	path := filepath.Join(d.path, name)
	text, err := os.ReadFile(path)
	if err == nil {
		m.Config, m.Version, err = fromText(text, path, ownTerms)
	}
	if err != nil {
		m.Err = fmt.Errorf("file %s: %w", path, err)
	}
	return m
}

// claimsOf returns the members of files in order.
func claimsOf(files map[string]file) (all []claim) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, claim{"file " + name, files[name].member})
	}
	return all
}
