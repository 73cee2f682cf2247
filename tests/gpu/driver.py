"""NVML as Python reads it: what vramlens is held against."""


class Driver:
    """NVML as Python reads it."""

    def __init__(self):
        import pynvml
        self.nvml = pynvml
        pynvml.nvmlInit()
        self.count = pynvml.nvmlDeviceGetCount()

    def memory(self, handle):
        try:
            info = self.nvml.nvmlDeviceGetMemoryInfo(handle, version=self.nvml.nvmlMemory_v2)
            return {"total": info.total, "used": info.used, "free": info.free,
                    "reserved": info.reserved}
        except (self.nvml.NVMLError, AttributeError):
            info = self.nvml.nvmlDeviceGetMemoryInfo(handle)
            return {"total": info.total, "used": info.used, "free": info.free, "reserved": None}

    def processes(self, handle):
        found = {}
        for ask in ("Compute", "Graphics"):
            call = getattr(self.nvml, f"nvmlDeviceGet{ask}RunningProcesses")
            for row in call(handle):
                found[row.pid] = max(found.get(row.pid, 0), row.usedGpuMemory or 0)
        return found

    def look(self):
        """What must not move while two figures are compared."""
        handles = [self.nvml.nvmlDeviceGetHandleByIndex(n) for n in range(self.count)]
        return [(self.memory(handle), self.processes(handle)) for handle in handles]

    def used(self, index=0):
        return self.memory(self.nvml.nvmlDeviceGetHandleByIndex(index))["used"]

    def fixed(self, index):
        nvml, handle = self.nvml, self.nvml.nvmlDeviceGetHandleByIndex(index)
        def text(value):
            return value.decode() if isinstance(value, bytes) else value
        def ask(call, *arguments):
            try:
                return call(handle, *arguments)
            except nvml.NVMLError:
                return None
        return {
            "uuid": text(nvml.nvmlDeviceGetUUID(handle)),
            "name": text(nvml.nvmlDeviceGetName(handle)),
            "minor": ask(nvml.nvmlDeviceGetMinorNumber),
            "power_limit_milliwatts": ask(nvml.nvmlDeviceGetEnforcedPowerLimit),
        }, {
            "temperature_celsius": (ask(nvml.nvmlDeviceGetTemperature, 0), 4),
            "power_milliwatts": (ask(nvml.nvmlDeviceGetPowerUsage), 150_000),
            "sm_clock_megahertz": (ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM), 500),
            "memory_clock_megahertz": (ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM), 500),
            "performance_state": (ask(nvml.nvmlDeviceGetPerformanceState), 2),
        }

    def versions(self):
        text = self.nvml.nvmlSystemGetDriverVersion()
        cuda = self.nvml.nvmlSystemGetCudaDriverVersion_v2()
        return (text.decode() if isinstance(text, bytes) else text,
                f"{cuda // 1000}.{cuda % 1000 // 10}")
