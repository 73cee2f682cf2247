//! `ComfyUI`, stable-diffusion-webui, bitsandbytes, `ExLlama`, whisper.cpp, Blender, Hashcat, games.

use super::{Signature, row};

pub(super) static TABLE: &[Signature] = &[
    row!(
        "bnb.dispatch",
        "bitsandbytes",
        Engine,
        Weights,
        ["Some modules are dispatched on the CPU", "enough GPU RAM to fit"],
        "Some modules are dispatched on the CPU or the disk",
        "the quantised model does not fit into the memory that is free"
    ),
    row!(
        "exllama.split",
        "exllama",
        Engine,
        Weights,
        ["Insufficient VRAM"],
        "Insufficient VRAM ⟦in split⟧",
        "the split over the GPUs leaves too little on one of them"
    ),
    row!(
        "exllama.autosplit",
        "exllama",
        Recovered,
        Unknown,
        ["does not fit on cuda"],
        "autosplit: … does not fit on cuda",
        "the automatic split goes on to the next GPU"
    ),
    row!(
        "whisper.state",
        "whisper.cpp",
        Engine,
        Compute,
        ["whisper_init_state: failed"],
        "whisper_init_state: failed to init … allocator",
        "a buffer of the compute graph did not fit"
    ),
    row!(
        "whisper.kv",
        "whisper.cpp",
        Engine,
        Kv,
        ["failed to allocate memory for the kv cache"],
        "failed to allocate memory for the kv cache",
        "the cache of keys and values did not fit"
    ),
    row!(
        "whisper.model",
        "whisper.cpp",
        Detail,
        Unknown,
        ["whisper_model_load"],
        "whisper_model_load: … model size = <weights:dec>",
        "weights on the device"
    ),
    row!(
        "sdcpp.params",
        "stable-diffusion.cpp",
        Engine,
        Weights,
        ["alloc params backend buffer failed"],
        "alloc params backend buffer failed",
        "the weights did not fit"
    ),
    row!(
        "blender.both",
        "blender",
        Engine,
        Unknown,
        ["System is out of GPU and shared"],
        "System is out of GPU and shared host memory",
        "the scene fits neither into the device nor into the host memory that it may use"
    ),
    row!(
        "blender.gpu",
        "blender",
        Engine,
        Unknown,
        ["System is out of GPU memory"],
        "System is out of GPU memory",
        "the scene does not fit into the device"
    ),
    row!(
        "blender.optix",
        "blender",
        Driver,
        Unknown,
        ["Failed to build OptiX acceleration"],
        "Failed to build OptiX acceleration structure",
        "the acceleration structure did not fit"
    ),
    row!(
        "hashcat.device",
        "hashcat",
        Engine,
        Unknown,
        ["Not enough allocatable device memory"],
        "Not enough allocatable device memory",
        "the hash list or the rules do not fit into the device"
    ),
    row!(
        "hashcat.alloc",
        "hashcat",
        Driver,
        Unknown,
        ["cuMemAlloc(): out of memory"],
        "cuMemAlloc(): out of memory",
        "the device had no memory to give"
    ),
    row!(
        "hashcat.opencl",
        "hashcat",
        Driver,
        Unknown,
        ["clCreateBuffer(): CL_MEM_OBJECT"],
        "clCreateBuffer(): CL_MEM_OBJECT_ALLOCATION_FAILURE",
        "OpenCL had no device memory to give"
    ),
    row!(
        "vray",
        "v-ray",
        Engine,
        Unknown,
        ["to perform the requested operation"],
        "unable to allocate enough memory to perform the requested operation",
        "the scene does not fit into the device"
    ),
    row!(
        "unreal",
        "unreal-engine",
        Engine,
        Unknown,
        ["Out of video memory trying to allocate"],
        "Out of video memory trying to allocate a rendering resource",
        "a resource of the renderer did not fit"
    ),
    row!(
        "unreal.budget",
        "unreal-engine",
        Detail,
        Unknown,
        ["Local Budget"],
        "Local Budget: <total:size>",
        "what the driver lets the program use"
    ),
    row!(
        "unreal.used",
        "unreal-engine",
        Detail,
        Unknown,
        ["Local Used"],
        "Local Used: <used:size>",
        "what the program uses of it"
    ),
    row!(
        "d3d.oom",
        "direct3d",
        Driver,
        Unknown,
        ["E_OUTOFMEMORY"],
        "E_OUTOFMEMORY",
        "Direct3D had no memory to give"
    ),
    row!(
        "directml",
        "pytorch-directml",
        Gpu,
        Unknown,
        ["not enough GPU video memory available"],
        "Could not allocate tensor with <req:int> bytes. There is not enough GPU video memory available",
        "DirectML could not get memory from the device"
    ),
    row!(
        "lmstudio",
        "lm-studio",
        Engine,
        Kv,
        ["stopped due to insufficient system resources"],
        "Model loading was stopped due to insufficient system resources.⟦ Under the current settings, this model requires approximately <req:dec> of memory⟧",
        "an estimate before loading: nothing was allocated"
    ),
    row!(
        "comfy.tiled",
        "comfyui",
        Recovered,
        Unknown,
        ["retrying with tiled VAE"],
        "retrying with tiled VAE decoding",
        "ComfyUI went on with a tiled decode"
    ),
    row!(
        "accelerate.buffer",
        "any",
        Detail,
        Unknown,
        ["bytes of buffer for offloaded layers"],
        "bytes of buffer for offloaded layers",
        "some layers are offloaded"
    ),
    row!(
        "accelerate.retry",
        "any",
        Recovered,
        Unknown,
        ["trying executable batch size"],
        "trying executable batch size",
        "the batch-size finder tries a smaller one"
    ),
    row!(
        "accelerate.decrease",
        "any",
        Recovered,
        Unknown,
        ["Decreasing batch size"],
        "Decreasing batch size",
        "the batch-size finder tries a smaller one"
    ),
    row!(
        "caught",
        "any",
        Recovered,
        Unknown,
        ["(caught, retrying)"],
        "(caught, retrying)",
        "the program caught the error"
    ),
    row!(
        "webui.footer",
        "any",
        Detail,
        Unknown,
        ["Sys: "],
        "GB, Sys: <used:size>",
        "what the device had in use"
    ),
];
