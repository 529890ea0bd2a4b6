package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kates-go/kates/examples/gateway/demo"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
)

// place is where the gateway works: a cluster, perhaps with others.
type place struct {
	client   *kates.Client
	clusters *fleet.Fleet // nil: there are none
	demo     *demo.Demo   // nil on a real cluster
	close    func()
}

// connect returns the cluster that the flags name, or the demonstration.
func (s *settings) connect(watched *observers, log *slog.Logger, stdout io.Writer) (*place, error) {
	options := append(watched.options(), kates.WithScheme(translate.Scheme()), kates.WithLogger(log))
	if s.demo() {
		d, err := demo.New(demo.Options{
			Clusters: s.demoClusters, Client: options, Address: s.address, Port: s.port, Out: stdout,
		})
		if err != nil {
			return nil, err
		}
		return &place{d.Client, d.Fleet, d, d.Close}, nil
	}
	client, err := kates.NewClient(s.cluster, options...)
	if err != nil {
		return nil, err
	}
	if !kates.InCluster() { // a pod waits for its API server; a person wants to know
		if _, err := client.ServerVersion(); err != nil {
			client.Close()
			return nil, fmt.Errorf("the cluster does not answer: %w", err)
		}
	}
	if s.clusters == "" {
		return &place{client: client, close: client.Close}, nil
	}
	from, err := s.source()
	if err != nil {
		client.Close()
		return nil, err
	}
	clusters, err := fleet.New(fleet.Options{
		Sources: []fleet.Source{from}, Home: client, Client: options,
		Interval: 50 * time.Millisecond, Logger: logr.FromSlogHandler(log.Handler()),
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &place{client: client, clusters: clusters, close: func() { clusters.Close(); client.Close() }}, nil
}

// source says where the other clusters are. Those that do not exist are an error here: later on
// they would be clusters that do not answer.
func (s *settings) source() (fleet.Source, error) {
	if strings.Contains(s.clusters, "/") {
		if _, err := os.ReadDir(s.clusters); err != nil {
			return nil, fmt.Errorf("-clusters: %w", err)
		}
		return source.Directory(s.clusters), nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.cluster.Kubeconfig
	kubeconfig, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("-clusters: %w", err)
	}
	names := strings.Split(s.clusters, ",")
	for _, name := range names {
		if kubeconfig.Contexts[name] == nil {
			return nil, fmt.Errorf("-clusters: there is no context %q in the kubeconfig, and a folder has a / in its name", name)
		}
	}
	return source.Contexts(s.cluster.Kubeconfig, names...), nil
}

// folder is where nginx' files are, and what removes it.
func (s *settings) folder() (dir string, remove func(), err error) {
	if s.dir != "" {
		return s.dir, func() {}, os.MkdirAll(s.dir, 0o700)
	}
	dir, err = os.MkdirTemp("", "gateway-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// logger logs in full on a cluster. In the demonstration, the output says what happens.
func (s *settings) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{}
	if s.demo() {
		options.Level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(w, options))
}
