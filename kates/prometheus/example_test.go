package prometheus_test

import (
	"fmt"
	"log"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/prometheus"
)

func Example() {
	server, err := katestest.StartServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	m := prometheus.New()
	registry := prom.NewRegistry() // or controller-runtime's metrics.Registry
	registry.MustRegister(m)
	client, err := kates.NewClientFromRESTConfig(server.Config, kates.WithObserver(m))
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
			fmt.Println(f.GetHelp(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: Open clients. 1
}
