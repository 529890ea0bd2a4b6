package main

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/kates-go/kates/examples/pipeline/promote"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// manifests are what is in all clusters: an object of a kind that the program knows, and one of a
// kind that it has never heard of.
const manifests = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "shop:1.0"}]}
---
apiVersion: cdn.example.com/v1
kind: Site
metadata: {name: pages, namespace: default}
spec: {release: "1.0"}
`

var site = katestest.Kind{APIVersion: "cdn.example.com/v1", Kind: "Site"}

//go:embed crd.yaml
var crd string

const pipeline = `
apiVersion: pipeline.kates.io/v1
kind: Pipeline
metadata: {name: shop, namespace: default}
spec:
  version: "1.0"
  stages:
  - name: test
    targets:
    - {cluster: test, kind: deploy, namespace: default, name: shop, set: {path: /spec/template/spec/containers/0/image, value: "shop:$(version)"}}
    - {cluster: test, kind: sites.cdn.example.com, namespace: default, name: pages, set: {path: /spec/release}}
  - name: live
    targets:
    - {cluster: east, kind: deploy, namespace: default, name: shop, set: {path: /spec/template/spec/containers/0/image, value: "shop:$(version)"}}
    - {cluster: west, kind: deploy, namespace: default, name: shop, set: {path: /spec/template/spec/containers/0/image, value: "shop:$(version)"}}
    - {cluster: west, kind: sites.cdn.example.com, namespace: default, name: pages, set: {path: /spec/release}}
`

// simulation is three clusters in memory, with what rolls out versions in each of them, and
// somebody who publishes versions. The Pipeline is in the first one.
type simulation struct {
	clusters []*simulated
	fleet    *fleet.Fleet
}

// simulate returns a client of the first cluster, the fleet of all three, and what ends them.
func simulate(options ...kates.Option) (home *kates.Client, clusters *fleet.Fleet, stop func(), err error) {
	s := &simulation{}
	for _, name := range []string{"test", "east", "west"} {
		contents := []katestest.Option{katestest.WithKinds(site), katestest.WithManifests(manifests)}
		if name == "test" {
			contents = append(contents, katestest.WithManifests(crd), katestest.WithManifests(pipeline))
		}
		c, err := newSimulated(name, options, contents...)
		if err != nil {
			return nil, nil, nil, errors.Join(err, s.close())
		}
		s.clusters = append(s.clusters, c)
	}
	if s.fleet, err = fleet.New(fleet.Options{}); err == nil {
		for _, c := range s.clusters {
			err = errors.Join(err, s.fleet.Set(c.member()))
		}
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, c := range s.clusters {
		running.Go(func() { c.rollOut(ctx) })
	}
	running.Go(func() { s.publish(ctx) })
	return s.clusters[0].client, s.fleet, func() {
		cancel()
		running.Wait()
		_ = s.close()
	}, nil
}

func (s *simulation) close() error {
	if s.fleet != nil {
		s.fleet.Close()
	}
	for _, c := range s.clusters {
		c.close()
	}
	return nil
}

// publish publishes versions, and takes a cluster away for a while, over and over.
func (s *simulation) publish(ctx context.Context) {
	west := s.clusters[2]
	steps := []func(){
		func() { s.version(ctx, "1.1") },
		func() { s.version(ctx, "1.2-broken") }, // goes no further than the test
		func() { s.version(ctx, "1.3") },
		func() { s.fleet.Remove(west.name); s.version(ctx, "1.4") },
		func() { _ = s.fleet.Set(west.member()) },
	}
	for i := 0; pause(ctx, 1500*time.Millisecond); i++ {
		steps[i%len(steps)]()
	}
}

func (s *simulation) version(ctx context.Context, version string) {
	name := &promote.Pipeline{}
	name.APIVersion, name.Kind, name.Namespace, name.Name = promote.APIVersion, promote.Kind, "default", "shop"
	_, _ = kates.Modify(ctx, s.clusters[0].admin, name, func(p *promote.Pipeline) error {
		p.Spec.Version = version
		return nil
	})
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
