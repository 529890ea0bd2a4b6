package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/kates-go/kates/examples/pipeline/promote"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// manifests are what is in all clusters: an object of a kind that the program knows, and one of a
// kind that it has never heard of.
const manifests = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default, uid: shop-deployment, generation: 1}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: "shop:1.0"}]}
status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}
---
apiVersion: cdn.example.com/v1
kind: Site
metadata: {name: pages, namespace: default, uid: pages, generation: 1}
spec: {release: "1.0"}
status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}
`

const pipeline = `
apiVersion: pipeline.kates.io/v1
kind: Pipeline
metadata: {name: shop, namespace: default, uid: shop-pipeline, generation: 1}
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
		text := manifests
		if name == "test" {
			text += "---" + pipeline
		}
		c, err := newSimulated(name, text, options)
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
	return s.clusters[0].fake.Client, s.fleet, func() {
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
		c.admin.Close()
		c.fake.Close()
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

// rollOut does what controllers and kubelets would do in a cluster: some time after a change of a
// spec, the status says that it is done, or has failed.
func (c *simulated) rollOut(ctx context.Context) {
	for pause(ctx, 200*time.Millisecond) {
		for _, kind := range []string{"deployments", "sites"} {
			var all []*kates.Unstructured
			if c.admin.List(ctx, kates.Query{Kind: kind}, &all) != nil {
				continue
			}
			for _, o := range all {
				_, _ = kates.ModifyStatus(ctx, c.admin, o, func(o *kates.Unstructured) error {
					o.Object["status"] = rolledOut(o)
					return nil
				})
			}
		}
	}
}

// rolledOut is the status of an object whose spec is in effect.
func rolledOut(o *kates.Unstructured) map[string]any {
	if o.GetKind() == "Site" {
		return map[string]any{"observedGeneration": o.GetGeneration(), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	}
	status := map[string]any{
		"observedGeneration": o.GetGeneration(), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
	}
	if broken(o) {
		status["availableReplicas"], status["readyReplicas"] = int64(0), int64(0)
		status["conditions"] = []any{map[string]any{
			"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "its pods do not become ready",
		}}
	}
	return status
}

func broken(o *kates.Unstructured) bool {
	image, _ := promote.Set{Path: "/spec/template/spec/containers/0/image"}.Get(o.Object)
	return strings.HasSuffix(image, "-broken")
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
