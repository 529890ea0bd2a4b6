package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// Snapshot is everything that the program needs, all of it at once.
type Snapshot struct {
	Services    []*corev1.Service
	Slices      []*discoveryv1.EndpointSlice
	Deployments []*appsv1.Deployment
	// nil if the kind does not exist
	Routes    []Route             `kates:"routes.quickstart.kates.io,optional"`
	Published []*corev1.ConfigMap // the program's own writes; see queries

	Deltas  []*kates.Delta
	Invalid []kates.Invalid
}

// Route is the part of a custom kind that the program needs.
type Route struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Host    string `json:"host"`
		Service string `json:"service"`
	} `json:"spec"`
}

// published is the name of the ConfigMap with the program's result.
const published = "quickstart-routing-table"

// queries narrow the fields of Snapshot.
func queries(namespace string) []kates.Query {
	return []kates.Query{
		{Name: "Services", Namespace: namespace},
		{Name: "Slices", Namespace: namespace},
		{Name: "Deployments", Namespace: namespace},
		{Name: "Routes", Namespace: namespace},
		{Name: "Published", Namespace: namespace, FieldSelector: "metadata.name=" + published},
	}
}

// routingTable turns the whole snapshot into one result.
func routingTable(s *Snapshot) (rows [][]string) {
	ready := map[string]int{}
	for _, slice := range s.Slices {
		service := slice.Namespace + "/" + slice.Labels["kubernetes.io/service-name"]
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[service] += len(e.Addresses)
			}
		}
	}
	rollout := map[string]string{}
	for _, d := range s.Deployments {
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		rollout[d.Namespace+"/"+d.Name] = fmt.Sprintf("%d/%d updated", d.Status.UpdatedReplicas, want)
	}
	hosts := map[string][]string{}
	for _, r := range s.Routes {
		service := r.Metadata.Namespace + "/" + r.Spec.Service
		hosts[service] = append(hosts[service], r.Spec.Host)
	}
	for _, service := range s.Services {
		name := service.Namespace + "/" + service.Name
		host := strings.Join(hosts[name], ",")
		if host == "" {
			host = "-"
		}
		rows = append(rows, []string{host, name, fmt.Sprint(ready[name]), rollout[name]})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][1] < rows[j][1] })
	return rows
}

// Proof is for a second reader, which only checks that own writes are there. It shares the watch.
type Proof struct{ Published []*corev1.ConfigMap }

// publish writes the result, and reads a snapshot at once: is the write in it?
func (p *program) publish(ctx context.Context, rows [][]string) error {
	p.generation++
	text := fmt.Sprintf("generation %d", p.generation)
	lines := []string{}
	for _, row := range rows {
		lines = append(lines, strings.Join(row, " "))
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"generation": text, "table": strings.Join(lines, "\n")}}
	cm.Name, cm.Namespace = published, p.namespace
	if err := p.client.Upsert(ctx, nil, cm, nil); err != nil {
		return err
	}
	written := time.Now()
	var next Proof
	if _, err := p.proof.Update(ctx, &next); err != nil {
		return err
	}
	for _, cm := range next.Published {
		if cm.Data["generation"] == text {
			p.out.ownWrite(text, time.Since(written), p.cluster != nil)
			return nil
		}
	}
	return fmt.Errorf("%s is not in the snapshot: that must not happen", text)
}
