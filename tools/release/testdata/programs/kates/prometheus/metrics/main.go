// Command metrics registers the metrics of a client with Prometheus' library.
package main

import (
	"fmt"
	"log"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/prometheus"
)

func main() {
	server, err := katestest.StartServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	metrics := prometheus.New()
	registry := prom.NewRegistry()
	registry.MustRegister(metrics)
	client, err := kates.NewClientFromRESTConfig(server.Config, kates.WithObserver(metrics))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kates_clients" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: kates_clients 1
}
