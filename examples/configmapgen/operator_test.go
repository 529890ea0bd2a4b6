package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/examples/configmapgen/generator"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// The tests run the operator on an API server in memory, in a bubble, where no time is lost.

// output is what the operator makes, and what it makes it from.
type output struct {
	Templates  []*generator.ConfigTemplate
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret
}

// cluster returns a server that has the definition and the objects of the example.
func cluster(t testing.TB) *katestest.Server {
	scheme, err := generator.Scheme()
	require.NoError(t, err)
	return katestest.NewServer(t, katestest.WithScheme(scheme), katestest.WithManifests(crd+"\n---\n"+example))
}

// program is the operator as a function, with a registry that outlives it.
func program(t testing.TB) katestest.Program {
	registry := &generator.FileRegistry{Path: filepath.Join(t.TempDir(), "registry.json")}
	return func(ctx context.Context, config *rest.Config) error {
		scheme, err := generator.Scheme()
		if err != nil {
			return err
		}
		log := slog.New(slog.DiscardHandler)
		client, err := kates.NewClientFromRESTConfig(config, kates.WithScheme(scheme), kates.WithLogger(log))
		if err != nil {
			return err
		}
		defer client.Close()
		c, err := operator(client, registry, settings{workers: 4}, log)
		if err != nil {
			return err
		}
		return c.Run(ctx)
	}
}

// remove deletes the example's ConfigTemplate.
func remove(ctx context.Context, user *kates.Client) error {
	template := &generator.ConfigTemplate{}
	template.Namespace, template.Name = "default", "web"
	return user.Delete(ctx, template, nil)
}

func TestItGeneratesWhatTheExampleWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(t)
		katestest.Settles(t, server, program(t))
		katestest.Golden(t, "testdata/web.yaml", katestest.Snapshot[output](t, server.Client(t)))
	})
}

func TestItSettlesAlsoAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, operator := cluster(t), program(t)
		// it looks at the template, and writes the finalizer, two config maps, and the status
		katestest.Settles(t, server, operator, katestest.CallLimit(5))
		// it looks again, and applies the config maps: it cannot know that nobody has changed them
		katestest.Settles(t, server, operator, katestest.CallLimit(3))
	})
}

func TestFaultsDelayItAndChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, faults := cluster(t), katestest.NewFaults(t, 1)
		server.Config.Wrap(faults.Wrap)
		faults.On(katestest.Match{Verb: "patch", Resource: "configmaps"}).Times(1).Status(500, "", 0)
		faults.On(katestest.Match{Resource: "configtemplates/status"}).Times(2).Lose()
		katestest.Settles(t, server, program(t))
		katestest.Golden(t, "testdata/web.yaml", katestest.Snapshot[output](t, server.Client(t)))
	})
}

func TestItMayCrashAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		katestest.CrashAnywhere(t, func() *katestest.Server { return cluster(t) }, program(t),
			katestest.Step(func(ctx context.Context, s *katestest.Server) error { return remove(ctx, s.Client(t)) }))
	})
}
