/* SPDX-License-Identifier: Apache-2.0 */
/* Every metric that agentd shows: one table, which docs/metrics.md explains (a test compares the two). The
 * order is that of the page.
 * X(FAMILY, "name without _total", TYPE, "unit" or "", "what it is, in a sentence") */
#pragma once

#define METRIC_FAMILIES(X)                                                                                   \
        /* executors; labels job, role, index */                                                             \
        X(ROLE, "primus_role", INFO, "", "The attempt of the executor that is on this host.")                \
        X(ROLE_STATE, "primus_role_state", GAUGE, "", "1 for the state that the executor is in.")            \
        X(ROLE_START_TIME, "primus_role_start_time_seconds", GAUGE, "seconds",                               \
          "When the attempt was started, since 1970.")                                                       \
        X(ROLE_CPU, "primus_role_cpu_seconds", COUNTER, "seconds", "CPU time used.")                         \
        X(ROLE_CPU_LIMIT, "primus_role_cpu_limit_cores", GAUGE, "cores", "CPUs that it may use at once.")    \
        X(ROLE_CPU_THROTTLED, "primus_role_cpu_throttled_seconds", COUNTER, "seconds",                       \
          "Time in which it was held back by its CPU limit.")                                                \
        X(ROLE_RUNQUEUE_WAIT, "primus_role_runqueue_wait_seconds", COUNTER, "seconds",                       \
          "Time in which its threads were ready to run and did not.")                                        \
        X(ROLE_PRESSURE_STALL, "primus_role_pressure_stall_seconds", COUNTER, "seconds",                     \
          "Time in which some or all of its threads stood still for lack of a resource.")                    \
        X(ROLE_MEMORY_CURRENT, "primus_role_memory_current_bytes", GAUGE, "bytes", "Memory in use.")         \
        X(ROLE_MEMORY_PEAK, "primus_role_memory_peak_bytes", GAUGE, "bytes", "Most memory used so far.")     \
        X(ROLE_MEMORY_ANON, "primus_role_memory_anon_bytes", GAUGE, "bytes",                                 \
          "Memory in use that is no cache of files.")                                                        \
        X(ROLE_MEMORY_SWAP, "primus_role_memory_swap_bytes", GAUGE, "bytes", "Swap in use.")                 \
        X(ROLE_MEMORY_LIMIT, "primus_role_memory_limit_bytes", GAUGE, "bytes", "Memory that it may use.")    \
        X(ROLE_MEMORY_EVENTS, "primus_role_memory_events", COUNTER, "",                                      \
          "How often it was held back at (high) or ran into (max) its memory limit.")                        \
        X(ROLE_OOM_KILLS, "primus_role_oom_kills", COUNTER, "",                                              \
          "Processes that the kernel killed for lack of memory.")                                            \
        X(ROLE_IO, "primus_role_io_bytes", COUNTER, "bytes",                                                 \
          "Bytes read and written: by its system calls, and on block devices.")                              \
        X(ROLE_NETWORK, "primus_role_network_bytes", COUNTER, "bytes", "Bytes received and sent.")           \
        X(ROLE_NETWORK_PACKETS, "primus_role_network_packets", COUNTER, "", "Packets received and sent.")    \
        X(ROLE_NETWORK_UNREAD, "primus_role_network_unread_bytes", GAUGE, "bytes",                           \
          "Bytes that arrived for it and that it has not read.")                                             \
        X(ROLE_NETWORK_LOOKS, "primus_role_network_looks", COUNTER, "", "Looks at its connections.")         \
        X(ROLE_NETWORK_LOOKS_UNREAD, "primus_role_network_looks_unread", COUNTER, "",                        \
          "Looks at which something had been waiting to be read since the look before.")                     \
        X(ROLE_TCP_RETRANSMITS, "primus_role_tcp_retransmits", COUNTER, "", "Segments sent again.")          \
        X(ROLE_TCP_RTT, "primus_role_tcp_rtt_seconds", GAUGE, "seconds",                                     \
          "Smoothed round-trip time, mean of its connections.")                                              \
        X(ROLE_TCP_CONNECTIONS, "primus_role_tcp_connections", GAUGE, "",                                    \
          "Connections that are established, to elsewhere than itself.")                                     \
        X(ROLE_TASKS, "primus_role_tasks", GAUGE, "", "Threads.")                                            \
        X(ROLE_RUNNING_TASKS, "primus_role_running_tasks", GAUGE, "", "Threads that run or are ready to.")   \
        X(ROLE_BLOCKED_TASKS, "primus_role_blocked_tasks", GAUGE, "",                                        \
          "Threads in uninterruptible sleep, most often for a disk.")                                        \
        X(ROLE_STOPPED_TASKS, "primus_role_stopped_tasks", GAUGE, "",                                        \
          "Threads stopped by a signal or a debugger.")                                                      \
        X(ROLE_LAST_RUN_AGE, "primus_role_last_run_age_seconds", GAUGE, "seconds",                           \
          "Time since any of its threads was on a CPU.")                                                     \
        X(ROLE_LAST_DATA_AGE, "primus_role_last_data_age_seconds", GAUGE, "seconds",                         \
          "Time since data was last delivered to it.")                                                       \
        X(ROLE_PROGRESS_STEP, "primus_role_progress_step", GAUGE, "", "The step that it says it is at.")     \
        X(ROLE_PROGRESS_AGE, "primus_role_progress_age_seconds", GAUGE, "seconds",                           \
          "Time since it last said so.")                                                                     \
        /* data of an executor */                                                                            \
        X(DATA_BYTES, "primus_data_bytes", COUNTER, "bytes", "Bytes of data delivered to it.")               \
        X(DATA_RECORDS, "primus_data_records", COUNTER, "", "Records of data delivered to it.")              \
        X(DATA_CONSUMER_WAIT, "primus_data_consumer_wait_seconds", COUNTER, "seconds",                       \
          "Time in which the trainer waited for data: it is starved.")                                       \
        X(DATA_PRODUCER_WAIT, "primus_data_producer_wait_seconds", COUNTER, "seconds",                       \
          "Time in which the trainer was busy with data that it had: it is the slow side.")                  \
        /* GPUs of an executor */                                                                            \
        X(ROLE_GPUS, "primus_role_gpus", GAUGE, "", "GPUs that it was given.")                               \
        X(ROLE_GPU_UTILIZATION, "primus_role_gpu_utilization_ratio", GAUGE, "ratio",                         \
          "Utilisation of its GPUs, mean.")                                                                  \
        X(ROLE_GPU_MEMORY, "primus_role_gpu_memory_used_bytes", GAUGE, "bytes",                              \
          "Memory in use on its GPUs, sum.")                                                                 \
        X(ROLE_GPU_POWER, "primus_role_gpu_power_watts", GAUGE, "watts", "Power that its GPUs draw, sum.")   \
        X(ROLE_GPU_BUSY, "primus_role_gpu_busy_seconds", COUNTER, "seconds",                                 \
          "Utilisation of its GPUs over time, sum.")                                                         \
        /* the host; label node */                                                                           \
        X(NODE, "primus_node", INFO, "", "The host, and its version of Primus.")                             \
        X(NODE_EXECUTORS, "primus_node_executors", GAUGE, "", "Executors on this host.")                     \
        X(NODE_CONNECTED, "primus_node_connected", GAUGE, "",                                                \
          "1 while the agent is registered with masterd.")                                                   \
        X(NODE_LOAD, "primus_node_load", GAUGE, "",                                                          \
          "Tasks that run, or wait for a CPU or a disk, as a mean of so many minutes.")                      \
        X(NODE_MEMORY_TOTAL, "primus_node_memory_total_bytes", GAUGE, "bytes", "Memory of the host.")        \
        X(NODE_MEMORY_AVAILABLE, "primus_node_memory_available_bytes", GAUGE, "bytes",                       \
          "Memory that programs can still get without swapping.")                                            \
        X(NODE_PRESSURE_STALL, "primus_node_pressure_stall_seconds", COUNTER, "seconds",                     \
          "Time in which some or all threads of the host stood still for lack of a resource.")               \
        X(NODE_EXITS, "primus_node_exits", COUNTER, "",                                                      \
          "Ends of executors, by what systemd calls the result.")                                            \
        X(NODE_LINK_UP, "primus_node_link_up", GAUGE, "",                                                    \
          "1 for an interface that is up and has a carrier.")                                                \
        X(NODE_LINK_SPEED, "primus_node_link_speed_bytes", GAUGE, "bytes",                                   \
          "Bytes that an interface can carry in a second.")                                                  \
        X(NODE_LINK_NETWORK, "primus_node_link_network_bytes", COUNTER, "bytes",                             \
          "Bytes received and sent by an interface.")                                                        \
        X(NODE_LINK_ERRORS, "primus_node_link_errors", COUNTER, "",                                          \
          "Packets that an interface received or sent damaged.")                                             \
        X(NODE_LINK_DOWNS, "primus_node_link_downs", COUNTER, "",                                            \
          "How often an interface has lost its carrier.")                                                    \
        /* GPUs of the host; labels node, gpu */                                                             \
        X(GPU, "primus_gpu", INFO, "", "A GPU of the host, or a part of one.")                               \
        X(GPU_LOST, "primus_gpu_lost", GAUGE, "", "1 for a GPU that does not answer.")                       \
        X(GPU_UTILIZATION, "primus_gpu_utilization_ratio", GAUGE, "ratio",                                   \
          "Share of the time in which something ran on it.")                                                 \
        X(GPU_MEMORY_USED, "primus_gpu_memory_used_bytes", GAUGE, "bytes", "Memory of the GPU in use.")      \
        X(GPU_MEMORY_TOTAL, "primus_gpu_memory_total_bytes", GAUGE, "bytes", "Memory of the GPU.")           \
        X(GPU_POWER, "primus_gpu_power_watts", GAUGE, "watts", "Power that it draws.")                       \
        X(GPU_ENERGY, "primus_gpu_energy_joules", COUNTER, "joules",                                         \
          "Energy used since its driver was loaded.")                                                        \
        X(GPU_TEMPERATURE, "primus_gpu_temperature_celsius", GAUGE, "celsius", "How hot it is.")             \
        X(GPU_ECC_ERRORS, "primus_gpu_ecc_errors", COUNTER, "",                                              \
          "Errors of its memory since its driver was loaded.")                                               \
        X(GPU_REMAPPED_ROWS, "primus_gpu_remapped_rows", GAUGE, "",                                          \
          "Rows of its memory that were replaced.")                                                          \
        X(GPU_PCIE_REPLAYS, "primus_gpu_pcie_replays", COUNTER, "",                                          \
          "PCIe packets sent again since it was reset.")                                                     \
        X(GPU_XID_ERRORS, "primus_gpu_xid_errors", COUNTER, "", "Xid errors since the agent was started.")   \
        X(GPU_LAST_XID, "primus_gpu_last_xid", GAUGE, "",                                                    \
          "Number of the last of these; 0 when there was none.")                                             \
        X(GPU_THROTTLED, "primus_gpu_throttled", GAUGE, "",                                                  \
          "1 for a reason for which its clock is held down now.")                                            \
        /* the agent itself */                                                                               \
        X(BPF_PROGRAM_UP, "primus_bpf_program_up", GAUGE, "", "1 for a probe that the kernel has taken.")    \
        X(BPF_DROPPED, "primus_bpf_ringbuf_dropped", COUNTER, "",                                            \
          "Events and executors that the probes had no room for.")                                           \
        X(AGENT_CPU, "primus_agent_cpu_seconds", COUNTER, "seconds", "CPU time of the agent.")               \
        X(AGENT_MEMORY, "primus_agent_memory_resident_bytes", GAUGE, "bytes",                                \
          "Memory of the agent that is present.")                                                            \
        X(AGENT_ROUNDS, "primus_agent_rounds", COUNTER, "", "Looks at the executors.")                       \
        X(AGENT_ROUND_TIME, "primus_agent_round_seconds", COUNTER, "seconds", "Time that those took.")       \
        X(SCRAPE_DURATION, "primus_scrape_duration_seconds", GAUGE, "seconds",                               \
          "Time that it took to write this page.")

enum metric_family {
#define X(family, name, type, unit, help) METRIC_##family,
        METRIC_FAMILIES(X)
#undef X
        _METRIC_FAMILY_MAX
};
