package source

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
)

// Contexts is a source of contexts of a kubeconfig: each is a cluster of the context's name.
// Without contexts it is all of them. If the path is empty, kubectl's rules say which files there
// are: those of $KUBECONFIG, or ~/.kube/config.
//
// The files are looked at every 5 seconds, and read again if they have changed. A context that is
// named here and is not in the files is an error of its cluster, which goes on as it was. Where
// all contexts count, one that is gone is a cluster that leaves: once it is gone at two looks,
// because a half-written file may parse. If a file cannot be read or does not parse, or there is
// none, all clusters stay, and the status says why.
//
// The files are this machine's own, so nothing in them is refused: see [Allow]. Relative paths in
// a file are relative to it.
func Contexts(kubeconfig string, contexts ...string) fleet.Source {
	s := &contextSource{poll: newPoll(), path: kubeconfig, contexts: slices.Clone(contexts)}
	slices.Sort(s.contexts)
	s.contexts = slices.Compact(s.contexts)
	return s
}

type contextSource struct {
	*poll
	path     string
	contexts []string
}

// String implements [fleet.Source].
func (s *contextSource) String() string {
	if s.path == "" {
		return "contexts of the kubeconfig"
	}
	return "contexts of " + s.path
}

// Run implements [fleet.Source].
func (s *contextSource) Run(ctx context.Context, set func([]fleet.Member)) error {
	var last []fleet.Member
	var doubtful *[]fleet.Member // what the last look has found, if it lacked something
	known := make(map[string]stamp)
	return s.run(ctx, set, func() ([]fleet.Member, bool, error) {
		rules := s.rules()
		if s.unchanged(rules.GetLoadingPrecedence(), known) {
			return last, false, nil
		}
		config, err := load(rules, known)
		if err != nil {
			clear(known)
			return nil, false, err
		}
		names := s.contexts
		if len(names) == 0 {
			names = slices.Sorted(maps.Keys(config.Contexts))
		}
		var all []fleet.Member
		for _, name := range names {
			all = append(all, memberOf(config, name))
		}
		if lacks(all, last) && (doubtful == nil || !slices.EqualFunc(all, *doubtful, sameMember)) {
			doubtful = &all
			clear(known)
			return last, false, nil
		}
		news := !slices.EqualFunc(all, last, sameMember)
		last, doubtful = all, nil
		return all, news, nil
	})
}

// lacks reports whether one of the members before is not there now.
func lacks(now, before []fleet.Member) bool {
	return slices.ContainsFunc(before, func(b fleet.Member) bool {
		return !slices.ContainsFunc(now, func(n fleet.Member) bool { return n.Name == b.Name })
	})
}

// memberOf makes a member of a context.
func memberOf(config *clientcmdapi.Config, name string) fleet.Member {
	m := fleet.Member{Name: name}
	if config.Contexts[name] == nil {
		m.Err = fmt.Errorf("the kubeconfig has no context %q", name)
		return m
	}
	c, err := connectionOf(config, name, ownTerms)
	if err != nil {
		m.Err = fmt.Errorf("context %q: %w", name, err)
		return m
	}
	m.Config, m.Version = c.config, c.version
	return m
}

// rules say which files there are.
func (s *contextSource) rules() *clientcmd.ClientConfigLoadingRules {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: s.path}
	if s.path == "" {
		rules = clientcmd.NewDefaultClientConfigLoadingRules()
	}
	rules.WarnIfAllMissing = false
	return rules
}

// unchanged reports whether all files are the same as when they were read.
func (s *contextSource) unchanged(files []string, known map[string]stamp) bool {
	found := 0
	for _, file := range files {
		info, err := os.Stat(file)
		switch before, ok := known[file]; {
		case err == nil && ok && before.unchanged(info, s.every):
			found++
		case err == nil || !os.IsNotExist(err):
			return false
		}
	}
	return found > 0 && found == len(known)
}

// load reads the files and merges them as kubectl does: those that are missing do not matter. It
// notes what was read. No error quotes a file.
func load(rules *clientcmd.ClientConfigLoadingRules, known map[string]stamp) (*clientcmdapi.Config, error) {
	clear(known)
	files := rules.GetLoadingPrecedence()
	for _, file := range files {
		info, err := os.Stat(file) // before it is read: a later change is seen next time
		if os.IsNotExist(err) {
			continue
		}
		now := stamp{info, time.Now()}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if _, err := parseKubeconfig(text, file); err != nil {
			return nil, fmt.Errorf("file %s: %w", file, err)
		}
		known[file] = now
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("there is no kubeconfig: %w (%v)", fs.ErrNotExist, files)
	}
	config, err := rules.Load()
	if err != nil { // a file has changed meanwhile, and the error may quote it
		return nil, fmt.Errorf("a kubeconfig among %v does not parse", files)
	}
	return config, nil
}
